import type { Permission } from '../../contract/index.ts';
import { didYouMean } from '../../contract/did-you-mean.ts';
import { resolve } from 'node:path';
import { wrongArguments, type Given } from '../arguments.ts';
import { appPermissions } from '../permissions.ts';
import { levels, scenarios, type Level } from './scenarios.ts';
import { hasApp, scriptCommand } from '../../files/index.ts';

/** Request that starts an app that waits for a click. It goes to the place that the launch led to. */
export interface StartRequest {
  readonly method: string;
  /** Relative to where the launch led. */
  readonly path: string;
  /** JSON; null for none. */
  readonly body: string | null;
}

export interface CertifyOptions {
  /** The app's launch address; null for the reference app, or an app of `startCommand` on a free port. */
  readonly launchUrl: string | null;
  /** Run by a shell, starts the app under test; null if it runs already, or for the reference app. */
  readonly startCommand: string | null;
  readonly launchMode: 'query' | 'form_post';
  readonly startRequest: StartRequest | null;
  /** The wire that the sandbox speaks; null for that of the app, or the contract's. */
  readonly profileFile: string | null;
  readonly port: string;
  /** Time limit for each event that a scenario waits for, in milliseconds. */
  readonly patienceMs: number;
  /** Scenarios to run; all where none is named. */
  readonly only: readonly string[];
  readonly expectFile: string | null;
  /** The level that the app must reach; null for none. */
  readonly level: Level | null;
  /** Draws the plan; null for the published one. */
  readonly challenge: string | null;
  /** Run by a shell, restarts the app under test; null where nobody can. */
  readonly restartCommand: string | null;
  /** Permissions of the app's key; null for those that the app declares. */
  readonly permissions: readonly Permission[];
  readonly signKeyFile: string | null;
  readonly jsonFile: string | null;
  readonly junitFile: string | null;
  readonly htmlFile: string | null;
  readonly badgeFile: string | null;
}

/** Options of the referee in front of a platform. */
export interface ObserveOptions extends Pick<
  CertifyOptions,
  | 'launchUrl'
  | 'startCommand'
  | 'launchMode'
  | 'startRequest'
  | 'profileFile'
  | 'port'
  | 'jsonFile'
  | 'junitFile'
  | 'htmlFile'
> {
  /** The platform's address. */
  readonly upstream: URL;
  /** End without a call, in milliseconds; null for none. */
  readonly idleMs: number | null;
  /** Receives what drift compares; null for none. */
  readonly recordFile: string | null;
}

export interface VerifyOptions {
  readonly reportFile: string;
  /** Public key that the report must be signed with; null names none, and then no report is good. */
  readonly publicKeyFile: string | null;
  /** The level that the report must have reached; null for none. */
  readonly level: Level | null;
  /** The challenge that the report must be of; null for any. */
  readonly challenge: string | null;
  /** Launch address or name of the app that the report must be of; null for any. */
  readonly app: string | null;
  /** Maximum age of the report, ms; null for any. */
  readonly maxAgeMs: number | null;
  /** Failures that may have been expected; null for none. */
  readonly expectFile: string | null;
}

export const usage = `usage: ${scriptCommand('certify')} [options]: launches an app through the plan and judges it, rule by rule
       ${scriptCommand('certify')} verify REPORT --public-key FILE [--level LEVEL] [--challenge SEED] [--app TEXT] [--max-age 30d]
       [--expect FILE]: verifies a signed report, and judges its traces again. Exits 0 if it is good, 1 if it is not, and 2 if
       no key was given, since anybody can sign
       ${scriptCommand('certify')} --upstream URL [options]: stands between an app and a real platform, and judges the launches
       that pass, until Ctrl-C

  --launch-url URL       Launch address of a running app${hasApp ? ' (default: starts your own app)' : ''}
  --start TEXT           Start the app by this command and stop it at the end. Its environment has PLATFORM_URL, PLATFORM_API_KEY
                         and PORT, the port of --launch-url (default: any free one, at http://127.0.0.1:PORT/launch)
  --launch-mode MODE     How the token reaches the app: query or form_post (default: query)
  --start-request TEXT   Request that starts a run after the launch: 'POST path {json}'
  --profile FILE         Wire profile of the sandbox (default: your own app's, if certify starts it; else the contract's)
  --port N               Port of the certifier's sandbox, whose key is SANDBOX_API_KEY (default: 4010 with --launch-url
                         alone, else any free port)
  --patience SECONDS     Longest wait for one event on an idle machine (default: 60; on a busy one up to ten times as long)
  --scenario ID          Run only this scenario; repeatable
  --level LEVEL          Fail below this level: protocol, robust or exemplary
  --challenge SEED       Draw users, scenes, order, times and faults from a seed, so that no app can know the plan;
                         {collectionId} and {itemId} in --start-request become those of the drawn scene
  --restart-command TEXT Restart the app by this command in one more scenario: 'docker restart my-app'
  --permissions LIST     Permissions of the app's key, with commas (default: external_app)
  --expect FILE          Known failures: [{"scenario": "chunk-cut", "rule": "chunk-order"}]
  --sign-key FILE        Sign the report with this Ed25519 key
  --upstream URL         Address of the platform. Give the app the address of the referee as its PLATFORM_URL, and launch it from
                         the platform; with --launch-url and PLATFORM_TOKEN the referee opens that launch itself
  --idle SECONDS         With --upstream: end if no call came for so long (default: only Ctrl-C ends)
  --record FILE          With --upstream: write the forms of the answers for drift --against FILE
  --public-key FILE      With verify: the Ed25519 key that you trust
  --app TEXT             With verify: launch address or name of the app
  --max-age AGE          With verify: maximum age of the report, such as 12h or 30d
  --json, --junit, --html FILE   Write the report to this file
  --badge FILE           Write the level as a badge for shields.io (endpoint)

scenarios: ${scenarios.map(({ id }) => id).join(', ')}
Exits 0 only if nothing failed and every rule that applies was exercised; with --upstream, if a launch was seen and nothing
failed (docs/certification.md).`;

const optionsOfVerify: readonly string[] = ['public-key', 'level', 'challenge', 'app', 'max-age', 'expect'];
/** Options that only `verify` takes. */
const onlyOfVerify = ['public-key', 'app', 'max-age'] as const;
/** Options that only the referee in front of a platform takes, and those that it does not take, because it leads no scenario. */
const onlyOfUpstream = ['idle', 'record'] as const;
const notOfUpstream = ['scenario', 'level', 'challenge', 'expect', 'restart-command', 'permissions', 'patience', 'sign-key', 'badge'] as const; // oxfmt-ignore

const wrong = (message: string) => wrongArguments(message, usage);

export const certifyArguments = {
  allowPositionals: true,
  options: {
    'launch-url': { type: 'string' },
    start: { type: 'string' },
    'launch-mode': { type: 'string' },
    'start-request': { type: 'string' },
    port: { type: 'string' },
    patience: { type: 'string' },
    scenario: { type: 'string', multiple: true },
    expect: { type: 'string' },
    level: { type: 'string' },
    challenge: { type: 'string' },
    'restart-command': { type: 'string' },
    permissions: { type: 'string' },
    'sign-key': { type: 'string' },
    'public-key': { type: 'string' },
    app: { type: 'string' },
    'max-age': { type: 'string' },
    json: { type: 'string' },
    junit: { type: 'string' },
    html: { type: 'string' },
    badge: { type: 'string' },
    profile: { type: 'string' },
    upstream: { type: 'string' },
    idle: { type: 'string' },
    record: { type: 'string' },
  },
} as const;

/** Reads the values of a command line. Paths are relative to `cwd`. Throws `KitError`. */
export function readCertifyOptions(
  { values, positionals }: Given<typeof certifyArguments>,
  cwd: string,
): CertifyOptions | VerifyOptions | ObserveOptions {
  const path = (file: string | undefined) => (file === undefined ? null : resolve(cwd, file));
  const level = levels.find((name) => name === values.level) ?? null;
  if (values.level !== undefined && level === null) throw wrong(`--level ${values.level} must be ${levels.join(', ')}`);
  if (values.challenge !== undefined && !/^[\w.-]{1,100}$/.test(values.challenge))
    throw wrong('--challenge must be 1 to 100 letters, digits, _ . or -');
  const [verb, reportFile, ...others] = positionals;
  if (verb === 'verify') {
    if (reportFile === undefined || others.length > 0) throw wrong('verify needs one argument: the report');
    const other = Object.keys(values).find((name) => !optionsOfVerify.includes(name));
    if (other !== undefined) throw wrong(`verify takes no --${other}; it takes --${optionsOfVerify.join(', --')}`);
    return {
      reportFile: resolve(cwd, reportFile),
      publicKeyFile: path(values['public-key']),
      level,
      challenge: values.challenge ?? null,
      app: values.app ?? null,
      maxAgeMs: values['max-age'] === undefined ? null : readAge(values['max-age']),
      expectFile: path(values.expect),
    };
  }
  for (const name of onlyOfVerify) if (values[name] !== undefined) throw wrong(`--${name} belongs to verify`);
  if (verb !== undefined) throw wrong(`certify takes no argument ${verb}; it takes verify, and a report`);
  const launchUrl = values['launch-url'] ?? null;
  if (launchUrl !== null && !(URL.canParse(launchUrl) && /^https?:$/.test(new URL(launchUrl).protocol)))
    throw wrong(`--launch-url ${launchUrl} must be an http or https address`);
  if (values.start?.trim() === '') throw wrong('--start must be a command');
  const launchMode = values['launch-mode'] ?? 'query';
  if (launchMode !== 'query' && launchMode !== 'form_post')
    throw wrong(`--launch-mode ${launchMode} must be query or form_post`);
  const shared = {
    launchUrl,
    startCommand: values.start ?? null,
    ...{
      launchMode,
      startRequest: values['start-request'] === undefined ? null : readStartRequest(values['start-request']),
    },
    profileFile: values.profile ?? null,
    ...{ jsonFile: path(values.json), junitFile: path(values.junit), htmlFile: path(values.html) },
  } satisfies Partial<ObserveOptions>;
  if (values.upstream !== undefined) {
    const other = notOfUpstream.find((name) => values[name] !== undefined);
    if (other !== undefined) throw wrong(`--upstream leads no scenario, and takes no --${other}`);
    const idle = values.idle === undefined ? null : Number(values.idle);
    if (idle !== null && !(idle >= 10 && idle <= 86_400))
      throw wrong(`--idle ${values.idle} must be 10 to 86400 seconds`);
    return {
      ...shared,
      ...{ upstream: readUpstream(values.upstream), port: values.port ?? '4010', recordFile: path(values.record) },
      idleMs: idle === null ? null : idle * 1000,
    };
  }
  for (const name of onlyOfUpstream) if (values[name] !== undefined) throw wrong(`--${name} belongs to --upstream`);
  const patience = Number(values.patience ?? 60);
  if (!(patience >= 5 && patience <= 86_400)) throw wrong(`--patience ${values.patience} must be 5 to 86400 seconds`);
  const only = values.scenario ?? [];
  const known = [...scenarios.map(({ id }) => id), 'restarted'];
  for (const id of only)
    if (!known.includes(id))
      throw wrong(`there is no scenario ${id}; there are ${known.join(', ')}${didYouMean(id, known)}`);
  if (only.includes('restarted') && values['restart-command'] === undefined)
    throw wrong('--scenario restarted needs --restart-command: what restarts the app');
  return {
    ...shared,
    port: values.port ?? (launchUrl === null || values.start !== undefined ? '0' : '4010'),
    patienceMs: patience * 1000,
    only,
    expectFile: path(values.expect),
    level,
    challenge: values.challenge ?? null,
    restartCommand: values['restart-command'] ?? null,
    permissions: appPermissions(values.permissions, usage),
    signKeyFile: path(values['sign-key']),
    badgeFile: path(values.badge),
  };
}

/** Throws `KitError` with the usage of the command. */
function readUpstream(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw wrong(`--upstream ${text} must be an http or https address`);
  const upstream = new URL(text);
  if (upstream.username || upstream.password || upstream.search || upstream.hash)
    throw wrong('--upstream must be an address alone: no user, no password, no ? and no #');
  return upstream;
}

const hourMs = 3_600_000;

/** Reads `12h` or `30d`, in milliseconds. Throws `KitError` with the usage of a command. */
export function readAge(text: string, usageOfCommand = usage): number {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  if (count === undefined)
    throw wrongArguments(`--max-age ${text} must be a number of hours or days, such as 12h or 30d`, usageOfCommand);
  return Number(count) * (unit === 'd' ? 24 : 1) * hourMs;
}

/** Throws `KitError` with the usage of the command. */
function readStartRequest(text: string): StartRequest {
  const wrong = (message: string) => wrongArguments(message, usage);
  const [, method, path, body] = /^([A-Z]+) (\S+)(?: ([\s\S]+))?$/.exec(text.trim()) ?? [];
  if (method === undefined || path === undefined)
    throw wrong(
      `--start-request ${text} must be a method, a path and perhaps a JSON body, such as 'POST api/runs {"stepId":"cog"}'`,
    );
  if (body !== undefined) {
    try {
      JSON.parse(body);
    } catch {
      throw wrong(`--start-request: the body ${body} is not JSON`);
    }
  }
  return { method, path, body: body ?? null };
}
