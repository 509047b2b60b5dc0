import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { gdalProblem } from '../child/index.ts';
import { isLoopbackName, KitError, type WireChanges } from '../contract/index.ts';
import { considerate, unpaced } from '../drift/target.ts';
import { codeOf, isPackage, scriptCommand } from '../files/index.ts';
import { readSecret } from '../sandbox/config.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { deliver } from './connect/deliver.ts';
import { terminalDialogue, type Dialogue } from './connect/dialogue.ts';
import { isModuleOf, LearnedProfile } from './connect/learned-profile.ts';
import { PlatformPlace } from './connect/platform-place.ts';
import { noRecording, readRecording } from './connect/recording.ts';
import { walk } from './connect/walk.ts';
import { requireWritable } from './files.ts';
import { loadMyApp } from './my-app.ts';
import { readWireProfile } from './wire-profile.ts';

const ownProfile = 'src/my-app/profile.ts';

const usage = `usage: ${scriptCommand('connect')} --platform URL [options]: learns how a platform differs from the contract, writes your wire profile, and lets the app deliver a file

  --platform URL   Its {base_url}; the API key comes from PLATFORM_API_KEY, or PLATFORM_API_KEY_FILE, or you paste it
  --out FILE       The wire profile that it reads, adds to and writes: .ts or .json (default: ${ownProfile})
  --from FILE      A recording of another client in the browser (HAR): its paths and values are offered as answers
  --no-delivery    Ends when all calls are understood

It needs a launch of your app on the platform: PLATFORM_TOKEN, or the address or token that you paste. It creates two
operations, which you approve, and two small files (docs/connect.md).`;

export default defineCommand(import.meta, {
  usage,
  options: {
    platform: { type: 'string' },
    out: { type: 'string', default: ownProfile },
    from: { type: 'string' },
    'no-delivery': { type: 'boolean', default: false },
  },
  async run({ values }) {
    const url = platformAddress(values.platform);
    const file = resolve(callerFolder(), values.out);
    if (!/\.(ts|json)$/.test(file)) throw wrongArguments(`--out ${values.out} must end with .ts or .json`, usage);
    await requireWritable(file);
    const learned = await startingProfile(file);
    const recording =
      values.from === undefined ? noRecording : await readRecording(resolve(callerFolder(), values.from), url);
    const kept = () => {
      const saved = learned.save();
      return saved === null ? 'nothing was learned yet' : `what was learned so far is in ${saved}`;
    };
    onInterrupt(() => {
      console.error(`\ninterrupted; ${kept()}`);
      process.exit(130);
    });
    const dialogue = terminalDialogue();
    try {
      const apiKey =
        readSecret(process.env, 'PLATFORM_API_KEY') ??
        (await dialogue.ask({
          about: 'key',
          text: 'The API key that the platform issued to your app (it is not shown).',
          isSecret: true,
        }));
      const token = await launchToken(dialogue, learned);
      const pace = isLoopbackName(new URL(url).hostname) ? unpaced : considerate;
      const place = new PlatformPlace({ url, apiKey, token, pace, learned, dialogue, recording });
      await walk(place);
      dialogue.say(`\nAll calls are understood. The wire profile is in ${file}`);
      if (values['no-delivery']) return 0;
      const problem = gdalProblem();
      if (problem !== null) throw new KitError('not_installed', `the app needs GDAL to deliver a file: ${problem}`);
      dialogue.say('\nThe app delivers a file');
      const run = await deliver(place, await loadMyApp());
      if (run.state === 'COMPLETED') {
        dialogue.say(
          `  COMPLETED: ${run.files.map(({ fileId, fileName }) => `${fileName} is ${fileId ?? 'there'}`).join(', ')}`,
        );
        dialogue.say('\nNext: compare everything else by npm run drift -- --level write (docs/drift.md)');
        return 0;
      }
      dialogue.say(`  ${run.state}: ${run.failure?.message ?? 'the operation was not approved'}`);
      return 1;
    } catch (error) {
      if (error instanceof KitError) dialogue.say(`\n${kept()}`);
      throw error;
    } finally {
      dialogue.close();
    }
  },
});

/** Throws `KitError`. */
function platformAddress(address: string | undefined): string {
  if (address === undefined) throw wrongArguments('--platform URL is required', usage);
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw wrongArguments('--platform must be an http or https address', usage);
  const { username, password, search, hash } = new URL(address);
  if (username || password || search || hash)
    throw wrongArguments('--platform must be an address alone: no user, no password, no ? and no #', usage);
  return address.replace(/\/+$/, '');
}

/** The profile in the file, or one without differences. Throws `KitError` for a file of which something would be lost. */
async function startingProfile(file: string): Promise<LearnedProfile> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
  const importedFrom = /import \{ wireProfile \} from ['"]([^'"]+)['"]/.exec(text ?? '')?.[1] ?? kitFrom(file);
  if (text === null) return new LearnedProfile({ name: 'connected' }, file, importedFrom);
  const { changes, name } = await readWireProfile(file, '/');
  if (changes === null || (!file.endsWith('.json') && !isModuleOf(text, changes)))
    throw new KitError(
      'bad_arguments',
      `${file} holds more than data, which connect would lose: code, or comments. Choose another file by --out, and put both together by hand`,
    );
  const named: WireChanges = name === 'assumed' ? { ...changes, name: 'connected' } : changes;
  return new LearnedProfile(named, file, importedFrom);
}

/** The module that a file of the kit's own repository imports the kit from, or else the package. */
function kitFrom(file: string): string {
  const index = join(callerFolder(), 'src/index.ts');
  if (isPackage || !existsSync(index)) return 'marketplace-app-kit';
  const path = relative(dirname(file), index);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The token of a launch. A pasted address also tells in which field the token comes. */
async function launchToken(dialogue: Dialogue, learned: LearnedProfile): Promise<string> {
  const given = readSecret(process.env, 'PLATFORM_TOKEN');
  if (given !== null) return given;
  const pasted = await dialogue.ask({
    about: 'launch',
    text: 'Launch your app on the platform, and paste the address that the browser opens, or the token (it is not shown).',
    isSecret: true,
  });
  if (!URL.canParse(pasted) || !/^https?:$/.test(new URL(pasted).protocol)) return pasted;
  const fields = [...new URL(pasted).searchParams];
  const chosen =
    fields.length === 1
      ? fields[0]?.[0]
      : await dialogue.ask({
          about: 'launchTokenField',
          text: 'Which parameter of the address is the token?',
          choices: fields.map(([field, value]) => ({ value: field, label: `${value.length} characters` })),
        });
  const token = fields.find(([field]) => field === chosen)?.[1];
  if (chosen === undefined || token === undefined || token === '')
    throw new KitError('bad_arguments', 'the address has no parameter with a token: paste the token alone');
  if (chosen !== learned.profile.launchTokenField) {
    learned.change({ launchTokenField: chosen });
    dialogue.say(`  a launch has the token in ${chosen}`);
  }
  return token;
}
