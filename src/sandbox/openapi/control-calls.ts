import * as z from 'zod';
import { appManifest } from '../../contract/index.ts';
import { controlAnswers as answers } from '../control/answers.ts';
import { newFault } from '../control/fault.ts';
import { clockMove, newKey, traceQuery, verdictQuery } from '../control/routes.ts';
import { newRateLimit } from '../control/rate-limit.ts';
import { newUser } from '../identity/users.ts';
import { newLaunch } from '../marketplace/launches.ts';
import type { DocumentedCall } from './documented-call.ts';

const get = { tag: 'Sandbox', method: 'get', clause: 'Sandbox control', errors: [401, 403, 421, 429, 500] } as const;
const getOne = { ...get, errors: [401, 403, 404, 421, 429, 500] } as const;
const post = {
  tag: 'Sandbox',
  method: 'post',
  clause: 'Sandbox control',
  errors: [400, 401, 403, 404, 409, 415, 421, 429, 500, 507],
} as const;
const remove = { ...get, method: 'delete', success: 204, errors: [...get.errors, 507] } as const;

/** The sandbox's own calls: no part of the platform. */
export const controlCalls: readonly DocumentedCall[] = [
  {
    ...get,
    id: 'getHealth',
    summary: 'Answers once the sandbox is ready',
    path: '/health',
    response: answers.health,
    errors: [],
    isSigned: true,
  },
  { ...get, id: 'listApps', summary: 'Registered apps', path: '/sandbox/apps', response: answers.apps },
  {
    ...post,
    id: 'registerApp',
    summary: 'Register an app by its manifest',
    path: '/sandbox/apps',
    json: appManifest,
    success: 201,
    response: answers.app,
  },
  { ...get, id: 'listUsers', summary: 'Users of the platform', path: '/sandbox/users', response: answers.users },
  {
    ...post,
    id: 'registerUser',
    summary: 'Register a user',
    path: '/sandbox/users',
    json: newUser,
    success: 201,
    response: answers.user,
  },
  {
    ...get,
    id: 'listKeys',
    summary: 'API keys, without the keys themselves',
    path: '/sandbox/keys',
    response: answers.keys,
  },
  {
    ...post,
    id: 'createKey',
    summary: 'Create an API key; it is shown this once',
    path: '/sandbox/keys',
    json: newKey,
    success: 201,
    response: answers.newKey,
  },
  { ...remove, id: 'revokeKey', summary: 'Revoke an API key', path: '/sandbox/keys/:id', errors: getOne.errors },
  {
    ...post,
    id: 'launch',
    summary: 'Launch an app for a user',
    path: '/sandbox/launches',
    json: newLaunch,
    success: 201,
    response: answers.newLaunch,
  },
  {
    ...getOne,
    id: 'getLaunch',
    summary: 'A launch with its operations and uploads',
    path: '/sandbox/launches/:launchId',
    response: answers.launch,
  },
  {
    ...post,
    id: 'revokeLaunch',
    summary: 'Revoke the tokens of a launch',
    path: '/sandbox/launches/:launchId/revoke',
    success: 204,
  },
  {
    ...getOne,
    id: 'getOtherCalls',
    summary: 'Calls that cannot be attributed to a launch',
    path: '/sandbox/trace',
    query: traceQuery,
    response: z.union([answers.trace, answers.har]),
    errors: [400, ...getOne.errors],
  },
  {
    ...getOne,
    id: 'getTrace',
    summary: 'The calls of a launch, secrets redacted',
    path: '/sandbox/launches/:launchId/trace',
    query: traceQuery,
    response: z.union([answers.trace, answers.har]),
    errors: [400, ...getOne.errors],
  },
  {
    ...getOne,
    id: 'getVerdict',
    summary: 'Does the app keep the protocol, rule by rule?',
    path: '/sandbox/launches/:launchId/verdict',
    query: verdictQuery,
    response: answers.verdict,
    otherMediaTypes: ['application/xml'],
    errors: [400, ...getOne.errors],
  },
  {
    ...get,
    id: 'listOperations',
    summary: 'The newest 1,000 operations, newest first',
    path: '/sandbox/operations',
    response: answers.operations,
  },
  {
    ...post,
    id: 'approveOperation',
    summary: 'Approve, as the user would',
    path: '/sandbox/operations/:operationId/approve',
    response: answers.operation,
  },
  {
    ...post,
    id: 'rejectOperation',
    summary: 'Reject, as the user would',
    path: '/sandbox/operations/:operationId/reject',
    response: answers.operation,
  },
  { ...get, id: 'getClock', summary: "The sandbox's time", path: '/sandbox/clock', response: answers.clock },
  {
    ...post,
    id: 'moveClock',
    summary: 'Move the clock forward, of all or of one launch',
    path: '/sandbox/clock',
    json: clockMove,
    response: answers.clock,
  },
  {
    ...get,
    id: 'listFaults',
    summary: 'Armed faults, with how often each fired',
    path: '/sandbox/faults',
    response: answers.faults,
  },
  {
    ...post,
    id: 'armFault',
    summary: 'Arm a fault',
    path: '/sandbox/faults',
    json: newFault,
    success: 201,
    response: answers.fault,
  },
  { ...remove, id: 'clearFaults', summary: 'Disarm all faults', path: '/sandbox/faults' },
  {
    ...get,
    id: 'getRateLimit',
    summary: 'How many calls a minute the platform takes',
    path: '/sandbox/rate-limit',
    response: answers.rateLimit,
  },
  {
    ...post,
    id: 'setRateLimit',
    summary: 'Limit the calls of a minute, of one endpoint or of all together',
    path: '/sandbox/rate-limit',
    json: newRateLimit,
    response: answers.rateLimit,
  },
  { ...remove, id: 'clearRateLimit', summary: 'Lift the limit', path: '/sandbox/rate-limit' },
  {
    ...getOne,
    id: 'getUpload',
    summary: 'The parts of an upload, with their digests',
    path: '/sandbox/uploads/:id',
    response: answers.uploadParts,
  },
  {
    ...getOne,
    id: 'getFile',
    summary: 'A file, and why it failed',
    path: '/sandbox/files/:id',
    response: answers.file,
  },
  {
    ...getOne,
    id: 'getJob',
    summary: 'An inference job, and why it failed',
    path: '/sandbox/jobs/:id',
    response: answers.job,
  },
  {
    ...post,
    id: 'reset',
    summary: 'Back to the seeded state; keys stay',
    path: '/sandbox/reset',
    response: answers.reset,
  },
];
