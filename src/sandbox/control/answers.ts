/** Responses of the control calls (contract, "Sandbox control"). */
import * as z from 'zod';
import {
  appManifest,
  fileStatus,
  inferenceStatuses,
  inferenceTypes,
  instant,
  operationStatus,
  sourceType,
  endpoints,
  permissions,
} from '../../contract/index.ts';
import { renewPolicies } from '../identity/launch.ts';
import type { Rule } from '../referee/rules/rule.ts';
import { advisories, results, rules } from '../referee/verdict.ts';
import { faultFields } from '../call/fault.ts';
import { newRateLimit } from '../call/rate-limit.ts';

const user = z.object({ id: z.string(), email: z.string(), name: z.string(), organization: z.string() });
const fault = faultFields
  .required()
  .extend({ id: z.string(), launchId: z.string().nullable(), fired: z.int() })
  .meta({ id: 'Fault' });
const operation = z
  .object({
    operationId: z.string(),
    launchId: z.string(),
    appId: z.string(),
    userId: z.string(),
    status: operationStatus,
    name: z.string(),
    description: z.string().nullable(),
    parameters: z.record(z.string(), z.unknown()),
    createdAt: instant,
    updatedAt: instant,
    expiresAt: instant,
  })
  .meta({ id: 'Operation' });
const upload = z.object({
  uploadId: z.string(),
  key: z.string(),
  operationId: z.string().nullable(),
  fileName: z.string(),
  receivedBytes: z.int(),
  parts: z.array(z.object({ partNumber: z.int(), size: z.int() })),
  fileId: z.string().nullable(),
});

/** Secrets redacted; a body is kept where it is JSON and not too large. */
const message = z.object({ headers: z.record(z.string(), z.string()), body: z.unknown() });

const judgedRule = (of: readonly Rule[]) =>
  z.object({
    rule: z.enum(of.map(({ id }) => id)),
    /** Section of the service interface that states the rule. */
    clause: z.string(),
    holds: z.string(),
    result: z.enum(results),
    /** At most 50 of them. */
    violations: z.array(
      z.object({
        severity: z.enum(['failed', 'warning']),
        calls: z.array(
          z.object({
            id: z.int(),
            at: instant,
            endpoint: z.enum(endpoints),
            status: z.int().nullable(),
          }),
        ),
        seen: z.string(),
        expected: z.string(),
        advice: z.string(),
      }),
    ),
    violationCount: z.int(),
    /** Explains which checks were left out. */
    note: z.string().optional(),
  });

export const controlAnswers = {
  health: z.object({ status: z.literal('ok') }),
  apps: z.object({ apps: z.array(appManifest) }),
  app: appManifest,
  users: z.object({ users: z.array(user) }),
  user,
  keys: z.object({
    keys: z.array(
      z.object({
        id: z.string(),
        permissions: z.array(z.enum(permissions)),
        appId: z.string().nullable(),
        createdAt: instant,
      }),
    ),
  }),
  /** The key is shown this once. */
  newKey: z.object({ id: z.string(), apiKey: z.string() }),
  newLaunch: z.object({ launchId: z.string(), token: z.string(), launchUrl: z.string(), expiresAt: instant }),
  launch: z.object({
    launchId: z.string(),
    appId: z.string(),
    userId: z.string(),
    renewPolicy: z.enum(renewPolicies),
    createdAt: instant,
    expiresAt: instant,
    operations: z.array(operation),
    uploads: z.array(upload),
  }),
  operations: z.object({ operations: z.array(operation) }),
  operation,
  clock: z.object({ now: instant }),
  faults: z.object({ faults: z.array(fault) }),
  fault,
  /** Null where there is none. */
  rateLimit: z.object({
    requestsPerMinute: newRateLimit.shape.requestsPerMinute.nullable(),
    /** Null where all calls count together. */
    endpoint: newRateLimit.shape.endpoint.unwrap().nullable(),
  }),
  uploadParts: z.object({
    uploadId: z.string(),
    parts: z.array(z.object({ partNumber: z.int(), size: z.int(), sha256: z.string() })),
  }),
  file: z.object({
    id: z.string(),
    userId: z.string(),
    launchId: z.string().nullable(),
    originalName: z.string(),
    size: z.int(),
    sourceType,
    status: fileStatus,
    /** Reason for the status FAILED. */
    reason: z.string().nullable(),
    mediaType: z.string().nullable(),
    sha256: z.string().nullable(),
    createdAt: instant,
    /** Item of the catalog; null if there is none, or not yet. */
    item: z.object({ collectionId: z.string(), itemId: z.string() }).nullable(),
  }),
  job: z.object({
    id: z.string(),
    modelId: z.string(),
    type: z.enum(inferenceTypes),
    fileId: z.string(),
    /** Owner of the file; null if the file is gone. */
    userId: z.string().nullable(),
    status: z.enum(inferenceStatuses),
    /** Reason for the status FAILED. */
    reason: z.string().nullable(),
    resultName: z.string().nullable(),
    startedAt: instant,
  }),
  trace: z.object({
    /** Number of calls that are kept; `calls` has the newest 10,000 of them. */
    total: z.int(),
    calls: z.array(
      z.object({
        id: z.int(),
        at: instant,
        launchAt: instant,
        endpoint: z.enum(endpoints),
        method: z.string(),
        /** With `{token}` for the token. */
        path: z.string(),
        /** Null where no answer was made. */
        status: z.int().nullable(),
        durationMs: z.number(),
        delivered: z.boolean(),
        requestBytes: z.int(),
        responseBytes: z.int(),
        detail: z.record(z.string(), z.unknown()),
        request: message,
        response: message,
      }),
    ),
  }),
  har: z.object({
    log: z.object({
      version: z.literal('1.2'),
      creator: z.object({ name: z.string(), version: z.string() }),
      entries: z.array(z.record(z.string(), z.unknown())),
    }),
  }),
  verdict: z.object({
    launchId: z.string(),
    appId: z.string(),
    /** The worst of the rules': failed, warning, passed; not_exercised where none was. */
    result: z.enum(results),
    /** Calls that were forgotten for want of room. The result is then not_exercised at best. */
    cutCalls: z.int(),
    rules: z.array(judgedRule(rules)),
    /** Rules that well-made apps follow in addition; not part of the result. */
    advisories: z.array(judgedRule(advisories)),
  }),
  reset: z.object({ status: z.literal('ok') }),
} as const;
