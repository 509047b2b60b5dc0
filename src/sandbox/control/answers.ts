import * as z from 'zod';
import { appManifest, externalAppEndpoints, instant, operationStatus } from '../../contract/index.ts';
import { permissions } from '../identity/api-keys.ts';
import { renewPolicies } from '../marketplace/launch.ts';
import { newFault } from './faults.ts';

/** What the control calls answer (contract, "Sandbox control"). */

const user = z.object({ id: z.string(), email: z.string(), name: z.string(), organization: z.string() });
const fault = newFault.required().extend({ id: z.string(), launchId: z.string().nullable(), fired: z.int() }).meta({ id: 'Fault' });
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
  parts: z.array(z.object({ partNumber: z.int(), size: z.int(), sha256: z.string() })),
  fileId: z.string().nullable(),
});

export const controlAnswers = {
  health: z.object({ status: z.literal('ok') }),
  apps: z.object({ apps: z.array(appManifest) }),
  app: appManifest,
  users: z.object({ users: z.array(user) }),
  user,
  keys: z.object({ keys: z.array(z.object({ id: z.string(), permissions: z.array(z.enum(permissions)), createdAt: instant })) }),
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
  trace: z.object({
    calls: z.array(
      z.object({
        at: instant,
        launchAt: instant,
        endpoint: z.enum(externalAppEndpoints),
        method: z.string(),
        /** Null where no answer was made. */
        status: z.int().nullable(),
        durationMs: z.number(),
        delivered: z.boolean(),
        requestBytes: z.int(),
        responseBytes: z.int(),
        detail: z.record(z.string(), z.unknown()),
      }),
    ),
  }),
  reset: z.object({ status: z.literal('ok') }),
} as const;
