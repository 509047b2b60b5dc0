/** The table of the sandbox's own calls, below `/sandbox`: no part of the platform (contract, "Sandbox control"). */
import * as z from 'zod';
import { appManifest, permissions } from '../../contract/index.ts';
import { newFault } from '../call/fault.ts';
import { newRateLimit } from '../call/rate-limit.ts';
import { newUser } from '../identity/users.ts';
import { newLaunch } from '../marketplace/launches.ts';
import { controlAnswers as answers } from './answers.ts';

/** A control call. Its route, its OpenAPI and the client of `testing` are derived from it. */
export interface ControlCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path in the syntax of Express. */
  readonly path: `/sandbox/${string}`;
  readonly summary: string;
  /** Text for a reader who has never seen the sandbox. */
  readonly description: string;
  readonly query?: z.ZodObject;
  /** The JSON body. Default: none. */
  readonly request?: z.ZodType;
  /** Descriptions of fields by their path, if the general one of the field does not fit. */
  readonly descriptions?: Readonly<Record<string, string>>;
  /** Body of a request. */
  readonly example?: unknown;
  /** Status of success. Default 200. */
  readonly success?: 200 | 201 | 204;
  /** The JSON of the answer. Default: none. */
  readonly response?: z.ZodType;
  /** The JSON of the answer in the format that the query can name instead. */
  readonly otherResponse?: z.ZodType;
  /** Further media types that the query can name. */
  readonly otherMediaTypes?: readonly string[];
}

const newKey = z.object({
  permissions: z
    .array(z.enum(permissions, `must be one of ${permissions.join(', ')}`))
    .min(1, 'must name at least one permission'),
  /** App that owns the key. The key identifies the app's calls without an identity token. */
  appId: z.string().optional(),
});
const clockMove = z.strictObject({
  advanceMs: z
    .int('must be an integer of milliseconds')
    .min(0, 'must be at least 0')
    .max(10 * 366 * 86_400_000, 'must be at most ten years'),
  launchId: z.string().optional(),
});
const traceQuery = z.object({ format: z.enum(['json', 'har'], 'must be json or har').default('json') });
const verdictQuery = z.object({ format: z.enum(['json', 'junit'], 'must be json or junit').default('json') });

/** The control calls, by the identifier of each in the OpenAPI document. */
export const controlCalls = {
  listApps: {
    method: 'GET',
    path: '/sandbox/apps',
    summary: 'Registered apps',
    description: 'Every app that is registered, with its manifest.',
    response: answers.apps,
  },
  registerApp: {
    method: 'POST',
    path: '/sandbox/apps',
    summary: 'Register an app by its manifest',
    description:
      'Registers an app, so that users can launch it. The launch address is http or https, without credentials.',
    request: appManifest,
    success: 201,
    response: answers.app,
    example: {
      id: 'my-app',
      name: 'My app',
      description: 'Computes things.',
      launchUrl: 'http://127.0.0.1:3000/launch',
      launchMode: 'query',
    },
    descriptions: {
      id: 'Identifier of the app: 1 to 64 letters, digits, dots, hyphens and underscores.',
      version: 'Version of the app.',
    },
  },
  listUsers: {
    method: 'GET',
    path: '/sandbox/users',
    summary: 'Users of the platform',
    description: 'The users who can launch apps.',
    response: answers.users,
  },
  registerUser: {
    method: 'POST',
    path: '/sandbox/users',
    summary: 'Register a user',
    description: 'Adds a user. Each user has a collection of uploads.',
    request: newUser,
    success: 201,
    response: answers.user,
    example: { email: 'ada@example.org', name: 'Ada' },
  },
  listKeys: {
    method: 'GET',
    path: '/sandbox/keys',
    summary: 'API keys, without the keys themselves',
    description: 'The API keys with their permissions. The keys themselves are stored as hashes and cannot be read.',
    response: answers.keys,
  },
  createKey: {
    method: 'POST',
    path: '/sandbox/keys',
    summary: 'Create an API key; it is shown this once',
    description:
      'Makes a key with these permissions, for one app or for any. The answer is the only place that shows the key.',
    request: newKey,
    success: 201,
    response: answers.newKey,
    example: { permissions: ['external_app'] },
    descriptions: { 'in.appId': 'App that the key belongs to: launches of other apps refuse it. Default: none.' },
  },
  revokeKey: {
    method: 'DELETE',
    path: '/sandbox/keys/:id',
    summary: 'Revoke an API key',
    description: 'Ends a key. Calls with it are then refused.',
    success: 204,
  },
  launch: {
    method: 'POST',
    path: '/sandbox/launches',
    summary: 'Launch an app for a user',
    description:
      'Launches an app as a user would in the marketplace: makes an identity token and the address to open. Without identifiers it takes the first app and user.',
    request: newLaunch,
    success: 201,
    response: answers.newLaunch,
    example: { appId: 'reference-app', renewPolicy: 'rotate' },
    descriptions: {
      'in.appId': 'App to launch. Default: the first one.',
      'in.userId': 'User who launches the app. Default: the first one.',
      token: 'Identity token of the launch. A secret: shown only here.',
      launchUrl: 'Address to open in a browser. It has the identity token if the app is launched by `query`.',
    },
  },
  getLaunch: {
    method: 'GET',
    path: '/sandbox/launches/:launchId',
    summary: 'A launch with its operations and uploads',
    description: 'Shows what became of a launch. The identity token is not shown.',
    response: answers.launch,
  },
  revokeLaunch: {
    method: 'POST',
    path: '/sandbox/launches/:launchId/revoke',
    summary: 'Revoke the tokens of a launch',
    description: 'Revokes every identity token of the launch, as if the user had logged out.',
    success: 204,
  },
  getOtherCalls: {
    method: 'GET',
    path: '/sandbox/trace',
    summary: 'Calls that cannot be attributed to a launch',
    description: 'Calls that carried no identity token of a known launch, secrets redacted, oldest first.',
    query: traceQuery,
    response: answers.trace,
    otherResponse: answers.har,
    descriptions: { format: '`har` answers an HTTP Archive. Default: the trace.' },
  },
  getTrace: {
    method: 'GET',
    path: '/sandbox/launches/:launchId/trace',
    summary: 'The calls of a launch, secrets redacted',
    description:
      "The calls of the launch as they came in, secrets redacted, oldest first, with the time of the launch's own clock.",
    query: traceQuery,
    response: answers.trace,
    otherResponse: answers.har,
    descriptions: { format: '`har` answers an HTTP Archive. Default: the trace.' },
  },
  getVerdict: {
    method: 'GET',
    path: '/sandbox/launches/:launchId/verdict',
    summary: 'Does the app keep the protocol, rule by rule?',
    description:
      'Judges the calls of the launch by the rules of section 4.8, and names each violation with the calls that show it.',
    query: verdictQuery,
    response: answers.verdict,
    otherMediaTypes: ['application/xml'],
    descriptions: { format: '`junit` answers JUnit XML. Default: JSON.' },
  },
  listOperations: {
    method: 'GET',
    path: '/sandbox/operations',
    summary: 'The newest 1,000 operations, newest first',
    description: 'Operations of all launches, newest first, with the parameters that the user reads.',
    response: answers.operations,
  },
  approveOperation: {
    method: 'POST',
    path: '/sandbox/operations/:operationId/approve',
    summary: 'Approve, as the user would',
    description: 'Decides an operation that is REQUESTED. Any other is 409.',
    response: answers.operation,
  },
  rejectOperation: {
    method: 'POST',
    path: '/sandbox/operations/:operationId/reject',
    summary: 'Reject, as the user would',
    description: 'Decides an operation that is REQUESTED. Any other is 409.',
    response: answers.operation,
  },
  getClock: {
    method: 'GET',
    path: '/sandbox/clock',
    summary: "The sandbox's time",
    description: 'The time by which tokens, operations and signatures expire.',
    response: answers.clock,
  },
  moveClock: {
    method: 'POST',
    path: '/sandbox/clock',
    summary: 'Move the clock forward, of all or of one launch',
    description:
      "Moves the clock forward, so that expiry can be tested without waiting. With `launchId` only that launch's tokens and operations move.",
    request: clockMove,
    response: answers.clock,
    example: { advanceMs: 3_600_000 },
  },
  listFaults: {
    method: 'GET',
    path: '/sandbox/faults',
    summary: 'Armed faults, with how often each fired',
    description: 'The faults that are armed, each with the number of calls that it has hit.',
    response: answers.faults,
  },
  armFault: {
    method: 'POST',
    path: '/sandbox/faults',
    summary: 'Arm a fault',
    description:
      'Lets the next matching calls fail in one way: an error status, a delay, a cut connection, a lost answer. With `launchId` it hits the calls of that launch alone.',
    request: newFault,
    success: 201,
    response: answers.fault,
    example: { endpoint: 'upload.chunk', times: 1, effect: { dropResponse: true } },
  },
  clearFaults: {
    method: 'DELETE',
    path: '/sandbox/faults',
    summary: 'Disarm all faults',
    description: 'Removes every armed fault.',
    success: 204,
  },
  getRateLimit: {
    method: 'GET',
    path: '/sandbox/rate-limit',
    summary: 'How many calls a minute the platform takes',
    description: 'The limit of calls in a minute; null if there is none.',
    response: answers.rateLimit,
    descriptions: { endpoint: 'Call that is limited; null if all calls count together.' },
  },
  setRateLimit: {
    method: 'POST',
    path: '/sandbox/rate-limit',
    summary: 'Limit the calls of a minute, of one endpoint or of all together',
    description: 'Answers calls beyond the limit with 429 and `Retry-After`.',
    request: newRateLimit,
    response: answers.rateLimit,
    example: { requestsPerMinute: 60 },
    descriptions: {
      endpoint: 'Call that is limited; null if all calls count together.',
      'in.endpoint': 'Call that is limited. Default: all calls count together.',
      'in.requestsPerMinute': 'Calls in a minute that are answered; the others get 429.',
    },
  },
  clearRateLimit: {
    method: 'DELETE',
    path: '/sandbox/rate-limit',
    summary: 'Lift the limit',
    description: 'Removes the limit.',
    success: 204,
  },
  getUpload: {
    method: 'GET',
    path: '/sandbox/uploads/:id',
    summary: 'The parts of an upload, with their digests',
    description: 'The parts of an upload that were received, each with its size and SHA-256.',
    response: answers.uploadParts,
  },
  getFile: {
    method: 'GET',
    path: '/sandbox/files/:id',
    summary: 'A file, and why it failed',
    description: 'The state of a file, its item, and the reason if its processing failed.',
    response: answers.file,
    descriptions: {
      launchId: 'Launch that uploaded the file; null for an upload by an API key.',
      status: 'State of the file’s processing: QUEUED, IN_PROGRESS, COMPLETED or FAILED.',
    },
  },
  getJob: {
    method: 'GET',
    path: '/sandbox/jobs/:id',
    summary: 'An inference job, and why it failed',
    description: 'The state of an inference job, and the reason if it failed.',
    response: answers.job,
    descriptions: {
      userId: 'Owner of the file; null if the file is gone.',
      type: 'Task of the model that runs.',
      status: 'State of the job.',
    },
  },
  reset: {
    method: 'POST',
    path: '/sandbox/reset',
    summary: 'Back to the seeded state; keys stay',
    description: 'Removes launches, files, faults and traces, and sets the clock back. Keys stay.',
    response: answers.reset,
    descriptions: { status: 'Always `ok`.' },
  },
} as const satisfies Readonly<Record<string, ControlCall>>;

type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;
/** Names of the control calls. */
export type ControlName = keyof typeof controlCalls;
/** The values in the path of a call. */
export type ControlPath<Row extends ControlCall> = { readonly [Name in NamesIn<Row['path']>]: string };
/** The answer to a call; nothing if it has no body. */
export type ControlAnswer<Row extends ControlCall> = Row extends { readonly response: infer Schema extends z.ZodType }
  ? z.output<Schema>
  : void;
