import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { gdalProblem } from '../child/index.ts';
import { assumedProfile, isLoopbackName, KitError, type WireProfile } from '../contract/index.ts';
import {
  asProbed,
  baselineProblem,
  compare,
  judge,
  observe,
  unmadeOf,
  unseenOf,
  type Observations,
} from '../drift/compare.ts';
import { coverageOf } from '../drift/coverage.ts';
import { creations } from '../drift/probes.ts';
import { isAsExpected, reportText, resultOf, withoutKnown, type DriftReport } from '../drift/report.ts';
import { considerate, levels, unpaced, type Level, type Target } from '../drift/target.ts';
import { scratchFolder, scriptCommand } from '../files/index.ts';
import { readSecret } from '../sandbox/config.ts';
import { openApi31 } from '../sandbox/openapi/document.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { knownDifferences, recording } from './drift/recorded-files.ts';
import { readJson, requireWritable } from './files.ts';
import { sandboxTarget } from './drift/sandbox-target.ts';
import { ownApp } from './own-app.ts';
import { appPermissions } from './permissions.ts';
import { readWireProfile } from './wire-profile.ts';

const usage = `usage: ${scriptCommand('drift')} --platform URL [options]: compares the platform with the sandbox by the same calls, and lists the differences

  --platform URL   Its {base_url}; the API key comes from PLATFORM_API_KEY, or PLATFORM_API_KEY_FILE
  --level LEVEL    read (only GET and search), launch (also an operation) or write (also uploads and a job, after your
                   approval) (default: read)
  --profile FILE   Wire profile of the platform (default: your app's)
  --record FILE    Write a record of the answers, for tests of the sandbox
  --against FILE   Compare with such a record instead of a platform
  --permissions LIST  Permissions that your app declares, with commas: a call that needs another one breaks nothing
                   (default: external_app)
  --expect FILE    Known differences: [{"exchange": "user-detail/of the launch", "fact": "body.email"}]
  --json FILE      Write the whole report to this file

Levels above read need an identity token of a launch: PLATFORM_TOKEN, or the token that you paste. Exits 0 only if the
differences are those expected, and with 2 if its own sandbox failed (docs/drift.md).`;

/** `noBaseline`: the command's own sandbox failed, so there is no verdict. */
const exitStatus = { asExpected: 0, differs: 1, noBaseline: 2 } as const;
const wrong = (message: string) => wrongArguments(message, usage);
const approvalMs = 30 * 60_000;
/** Time that the person gets if nobody can read the answer, in milliseconds. */
const unreadableMs = 60_000;

export default defineCommand(import.meta, {
  usage,
  options: {
    platform: { type: 'string' },
    level: { type: 'string', default: 'read' },
    profile: { type: 'string' },
    record: { type: 'string' },
    against: { type: 'string' },
    expect: { type: 'string' },
    json: { type: 'string' },
    permissions: { type: 'string' },
  },
  async run({ values }) {
    const problem = gdalProblem();
    if (problem !== null)
      throw new KitError('not_installed', `drift compares rasters too, so its own sandbox needs GDAL: ${problem}`);
    const folder = callerFolder();
    const level = levels.find((name) => name === values.level);
    if (level === undefined) throw wrong(`--level ${values.level} must be ${levels.join(', ')}`);
    if ((values.platform === undefined) === (values.against === undefined))
      throw wrong('give one of --platform URL and --against FILE');
    const profile =
      values.profile === undefined ? await profileOfMyApp() : await readWireProfile(values.profile, folder);
    for (const file of [values.json, values.record])
      if (file !== undefined) await requireWritable(resolve(folder, file));
    const known =
      values.expect === undefined
        ? []
        : await readJson(resolve(folder, values.expect), knownDifferences, '[{"exchange": "...", "fact": "..."}]');
    const record =
      values.against === undefined
        ? null
        : await readJson(resolve(folder, values.against), recording, 'a file that --record wrote');
    const permissions = appPermissions(values.permissions, usage);
    const other = record ?? (await platformTarget(values.platform ?? '', level, { profile, permissions }));
    const seenLevel = record?.level ?? level;

    const scratch = scratchFolder('drift');
    const own = await sandboxTarget(scratch.path, profile, permissions).catch(async (error: unknown) => {
      await scratch.remove();
      throw error;
    });
    onInterrupt(() => {
      console.error('interrupted');
      process.exit(130);
    });
    try {
      const expected = await observe(own.target, seenLevel);
      const baseline = baselineProblem(expected, seenLevel);
      if (baseline !== null) {
        console.error(baseline);
        return exitStatus.noBaseline;
      }
      // An app makes no probes, so what it did not ask is not missing.
      const isObserved = record?.observed === true;
      const seen: Observations = 'exchanges' in other ? other : await observe(other, level);
      const found = isObserved ? asProbed(seen, expected) : seen;
      const { unknown, gone } = withoutKnown(compare(expected, found), known, found.exchanges);
      const unmade = isObserved ? [] : unmadeOf(found, seenLevel);
      const unseen = isObserved ? [] : unseenOf(expected, found);
      // A record is of the probes that its release had.
      const isPartial = unmade.length > 0 || (record === null && unseen.length > 0);
      const report: DriftReport = {
        format: 'marketplace-drift/1',
        platform: values.platform ?? values.against ?? '',
        level: seenLevel,
        finishedAt: new Date().toISOString(),
        result: resultOf(unknown, isPartial),
        unmade,
        unseen,
        differences: unknown,
        gone,
        assumptions: judge(found, expected, unknown),
        coverage: coverageOf(found.exchanges, openApi31('http://sandbox')),
        missing: found.missing,
      };
      console.log(reportText(report, found.exchanges));
      const write = (file: string, value: unknown) =>
        writeFile(resolve(folder, file), `${JSON.stringify(value, null, 2)}\n`);
      if (values.json !== undefined) await write(values.json, { ...report, exchanges: found.exchanges });
      if (values.record !== undefined)
        await write(values.record, { format: 'marketplace-drift-record/1', level, ...found });
      return isAsExpected(report) ? exitStatus.asExpected : exitStatus.differs;
    } finally {
      await own.close();
      await scratch.remove();
    }
  },
});

async function profileOfMyApp(): Promise<WireProfile> {
  return (await ownApp())?.profile ?? assumedProfile;
}

async function platformTarget(
  address: string,
  level: Level,
  { profile, permissions }: Required<Pick<Target, 'profile' | 'permissions'>>,
): Promise<Target> {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw wrong(`--platform ${address} must be an http or https address`);
  const { username, password, search, hash } = new URL(address);
  if (username || password || search || hash)
    throw wrong('--platform must be an address alone: no user, no password, no ? and no #');
  const apiKey = readSecret(process.env, 'PLATFORM_API_KEY');
  if (apiKey === null)
    throw new KitError(
      'bad_arguments',
      'PLATFORM_API_KEY (or PLATFORM_API_KEY_FILE) is required: the key that the platform issued to you',
    );
  const url = address.replace(/\/+$/, '');
  if (level !== 'read') console.log(`--level ${level} will create on ${url}:\n  ${creations[level]}\n`);
  const given =
    level === 'read'
      ? ''
      : (readSecret(process.env, 'PLATFORM_TOKEN') ?? (await ask('identity token of a launch (it is not shown): ')));
  if (level !== 'read' && given === '')
    throw new KitError('bad_arguments', `--level ${level} needs an identity token of a launch`);
  return {
    url,
    apiKey,
    profile,
    permissions,
    pace: isLoopbackName(new URL(url).hostname) ? unpaced : considerate,
    token: () => Promise.resolve(given),
    async approve(operationId, token) {
      console.log(`approve the operation "drift" (${operationId}) in the platform; waiting for up to 30 minutes`);
      const { getOperation } = profile.calls;
      const beganAt = Date.now();
      const { method, path, query, headers } = getOperation.encode({ token, operationId });
      for (const giveUpAt = Date.now() + approvalMs; Date.now() < giveUpAt; await sleep(considerate.pollMs)) {
        const answer = await fetch(`${url}${path}?${new URLSearchParams(query).toString()}`, {
          method,
          headers: { ...headers, ...profile.authenticate(apiKey) },
          redirect: 'manual',
        }).catch(() => null);
        const body: unknown = await answer?.json().catch(() => null);
        try {
          // An answer that fails may be followed by a better one.
          if (!answer || answer.status >= 500 || answer.status === 429) continue;
          if (answer.ok && getOperation.decode(body).status !== 'REQUESTED') return;
          if (answer.ok) continue;
        } catch {
          // The probe reports the fault of the body.
        }
        if (Date.now() < beganAt + unreadableMs) continue;
        console.log(
          `the profile's calls.getOperation does not fit (status ${answer?.status}): going on without the approval`,
        );
        return;
      }
    },
  };
}

/** Asks without showing the typed text. */
async function ask(question: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new KitError(
      'bad_arguments',
      'an identity token of a launch is needed: set PLATFORM_TOKEN, or PLATFORM_TOKEN_FILE',
    );
  process.stdout.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: process.stdin.isTTY });
  try {
    return (
      await lines.question('').catch(() => {
        throw new KitError('interrupted', 'interrupted');
      })
    ).trim();
  } finally {
    lines.close();
    process.stdout.write('\n');
  }
}
