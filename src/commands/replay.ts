import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { assumedProfile, KitError } from '../contract/index.ts';
import { codeOf, scratchFolder } from '../files/index.ts';
import { readSecret } from '../sandbox/config.ts';
import { bundle as bundleSchema, bundleFormat, type Bundle } from '../sandbox/bundles/bundle.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { OpenError } from './certify/browser.ts';
import { readStartRequest, type StartRequest } from './certify/options.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { loadMyApp } from './my-app.ts';
import { startOwnSandbox } from './own-sandbox.ts';
import { bringInputs, UnplayableError } from './replay/bring-inputs.ts';
import { firstDifference } from './replay/compare.ts';
import { play } from './replay/play.ts';
import { record, save } from './replay/record.ts';
import { startService } from './service-process.ts';

const usage = `usage: npm run replay -- LAUNCH_ID|FILE [options]: plays a run again, and compares the results
       npm run replay -- --run RUN_ID [options]: the same with a run of your app (DATA_DIR, DATABASE_URL)

  --sandbox URL         The sandbox that has seen the launch (default: http://127.0.0.1:4010); SANDBOX_ADMIN_KEY is its key
                        if it has one
  --save FILE           Keep the run as a file, to be played again later; plays nothing now
  --launch-url URL      A running app; without it, your own. It must be configured to the sandbox at --port, with
                        SANDBOX_API_KEY
  --start-request TEXT  The request that begins a run, instead of the recorded one: 'POST path {json}'
  --port N              Port of the sandbox for the replay (default: 4010 with --launch-url, else any free one)
  --input FILE          An input that is too large for the file, found by its digest; repeatable
  --patience SECONDS    Longest time without a call, after which the replay ends (default: 20)

Exits 0 if the results are the same, 1 if a verdict, call or output differs or a cause never fired (with the first
difference), and 2 if the run cannot be played again (with the reason).`;

/** True also for a missing .json file, because no launch id ends like that. */
const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true || /\.json$/.test(path);

const ofAnyFormat = z.object({ format: z.string() });

export default defineCommand(import.meta, {
  usage,
  allowPositionals: true,
  options: {
    run: { type: 'string' },
    sandbox: { type: 'string', default: 'http://127.0.0.1:4010' },
    save: { type: 'string' },
    'launch-url': { type: 'string' },
    'start-request': { type: 'string' },
    port: { type: 'string' },
    input: { type: 'string', multiple: true, default: [] },
    patience: { type: 'string', default: '20' },
  },
  async run({ values, positionals }) {
    const [given, more] = positionals;
    if (more !== undefined || (given === undefined) === (values.run === undefined))
      throw wrongArguments('give a LAUNCH_ID, a FILE, or --run RUN_ID', usage);
    if (!URL.canParse(values.sandbox)) throw wrongArguments(`--sandbox ${values.sandbox} must be an address`, usage);
    const launchUrl = values['launch-url'];
    if (launchUrl !== undefined && !URL.canParse(launchUrl))
      throw wrongArguments(`--launch-url ${launchUrl} must be an address`, usage);
    const patienceMs = Number(values.patience) * 1000;
    if (!(patienceMs >= 7_000)) throw wrongArguments(`--patience ${values.patience} must be 7 seconds or more`, usage);
    const startRequest =
      values['start-request'] === undefined ? null : readStartRequest(values['start-request'], usage);
    if (launchUrl !== undefined && readSecret(process.env, 'SANDBOX_API_KEY') === null)
      throw wrongArguments('--launch-url needs SANDBOX_API_KEY: the key that the app is configured with', usage);
    const inCaller = (path: string) => resolve(callerFolder(), path);
    try {
      const recorded =
        given !== undefined && isFile(inCaller(given))
          ? await readBundle(inCaller(given))
          : await record(values.sandbox, given === undefined ? { runId: values.run ?? '' } : { launchId: given });
      if (values.save !== undefined) return await save(recorded, inCaller(values.save));
      if (recorded.obstacles.length > 0 && startRequest === null)
        throw new UnplayableError(`${recorded.obstacles.join('; ')}; --start-request may say what to run in its place`);
      return await replay(recorded, {
        launchUrl,
        startRequest,
        patienceMs,
        port: values.port,
        paths: values.input.map(inCaller),
      });
    } catch (error) {
      if (!(error instanceof UnplayableError || error instanceof OpenError)) throw error;
      console.log(`not replayable: ${error.message}`);
      return 2;
    }
  },
});

interface Wanted {
  /** Launch address of another app; undefined for your own app. */
  readonly launchUrl: string | undefined;
  readonly startRequest: StartRequest | null;
  readonly patienceMs: number;
  readonly port: string | undefined;
  /** Inputs that are not in the bundle. */
  readonly paths: readonly string[];
}

async function replay(recorded: Bundle, { launchUrl, startRequest, patienceMs, port, paths }: Wanted): Promise<number> {
  const definition = launchUrl === undefined ? await loadMyApp() : null;
  const profile = definition?.profile ?? assumedProfile;
  const stop = new AbortController();
  onInterrupt(() => stop.abort(new KitError('interrupted', 'interrupted')));
  const scratch = scratchFolder('replay');
  const folder = scratch.path;
  const stops: (() => Promise<unknown>)[] = [() => scratch.remove()];
  try {
    const sandbox = await startOwnSandbox({
      folder: join(folder, 'sandbox'),
      profile,
      seed: recorded.seed,
      port: port ?? (launchUrl === undefined ? '0' : '4010'),
      apiKey: readSecret(process.env, 'SANDBOX_API_KEY'),
    });
    stops.unshift(() => sandbox.close());
    const inputDir = join(folder, 'inputs');
    const items =
      startRequest === null
        ? await bringInputs(recorded, {
            paths,
            folder: join(folder, 'brought'),
            inputDir: launchUrl === undefined ? inputDir : null,
            ...{ sandbox, profile, signal: stop.signal },
          })
        : new Map<string, never>();
    let address = launchUrl;
    if (address === undefined) {
      const app = await startService('app', [], {
        PLATFORM_URL: sandbox.url,
        PLATFORM_API_KEY: sandbox.apiKey,
        APP_SECRET: randomBytes(32).toString('base64url'),
        DATA_DIR: join(folder, 'app'),
        INPUT_DIR: inputDir,
        UPLOAD_PART_BYTES: String(partBytesOf(recorded)),
        PORT: '0',
        HOST: '127.0.0.1',
        LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'error',
      });
      stops.unshift(() => app.stop());
      address = `${app.url}/launch`;
    }
    const {
      bundle: now,
      rules,
      unfired,
    } = await play(recorded, {
      sandbox,
      launchUrl: address,
      startRequest,
      tokenField: profile.launchTokenField,
      limits: profile.limits,
      patienceMs,
      items,
      signal: stop.signal,
    });
    const difference = firstDifference(recorded, now, rules);
    if (difference !== null) console.log(`not the same, ${difference}`);
    for (const cause of unfired) console.log(`never fired: ${cause}`);
    if (difference !== null || unfired.length > 0) return 1;
    console.log(
      `the same: ${now.effects.length} calls, ${now.outputs.length} outputs, by ${recorded.causes.length} causes`,
    );
    return 0;
  } catch (error) {
    if (stop.signal.aborted) {
      console.error('interrupted');
      return 130;
    }
    throw error;
  } finally {
    for (const one of stops) await one();
  }
}

async function readBundle(path: string): Promise<Bundle> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UnplayableError(`${path} cannot be read (${codeOf(error)})`);
  });
  const value = jsonOf(text);
  const read = bundleSchema.safeParse(value);
  if (read.success) return read.data;
  throw new UnplayableError(`${path} is no bundle of a run that this version reads: ${whatIsWrong(value, read.error)}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Describes the fault of a file that is no bundle, and its place. */
function whatIsWrong(value: unknown, error: z.ZodError): string {
  if (value === undefined) return 'it is not JSON, or not the whole of it';
  const format = ofAnyFormat.safeParse(value).data?.format;
  if (format !== bundleFormat)
    return `its format is ${format === undefined ? 'not told' : JSON.stringify(format)}, and must be "${bundleFormat}" (--save writes one)`;
  const [issue] = error.issues;
  return issue ? `${issue.path.join('.') || 'it'}: ${issue.message}` : 'it has no fields';
}

/** Size of the parts that the app has cut. An output of one part shows only that it fits. */
function partBytesOf({ effects }: Bundle): number {
  const sizes = effects.flatMap(({ endpoint, partNumber, size }) =>
    endpoint === 'upload.chunk' && partNumber === 1 && size !== undefined ? [size] : [],
  );
  const isCut = effects.some(({ endpoint, partNumber }) => endpoint === 'upload.chunk' && (partNumber ?? 0) > 1);
  return isCut && sizes.length > 0 ? Math.max(...sizes) : 8 * 1024 * 1024;
}
