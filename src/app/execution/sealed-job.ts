/** The messages between the owner of a run and a process elsewhere that does its step. They hold no key, no identity token and no address of a database. */
import { createHash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { isPathSegment } from '../../contract/index.ts';
import { isRecord } from '../../files/index.ts';
import { plainText } from '../../child/index.ts';
import type { ItemFacts } from '../../raster/index.ts';
import type { UnhashedInputs } from '../processing/input-digests.ts';
import type { ProvenanceKnown } from '../processing/provenance.ts';
import type { ParameterValue } from '../processing/step-parameters.ts';

/** Name of a job. Every engine accepts it. */
const namePattern = /^step-[0-9a-f]{24}$/;

export const isJobName = (name: string): boolean => namePattern.test(name);

/** The name of the job with this token. Each attempt has another one, since engines may keep a job of the same name for a while. */
export const jobName = (token: string): string => `step-${hashOf(token).slice(0, 24)}`;

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** Compares in a time that says nothing about the secret. `hash` is the result of `hashOf`. */
export function isSecretOf(hash: string | null, secret: string): boolean {
  return hash !== null && timingSafeEqual(Buffer.from(hash), Buffer.from(hashOf(secret)));
}

/** Name of a file within a folder. It may hold all that a file system allows there. */
const fileName = z
  .string()
  .max(255)
  .refine((name) => isPathSegment(name) && !/[/\0]/.test(name));
const sha256 = z.hash('sha256');
const bytes = z.int().min(0);

/** Everything that an executor needs to do a step: its code's digest, parameters, input files by their number, and limits. */
export const sealedJob = z.strictObject({
  format: z.literal(1),
  name: z.string().regex(namePattern),
  /** Further addresses of processes that know where the run's owner is, if the first does not answer. */
  addresses: z.array(z.url()).max(10),
  step: z.strictObject({ id: z.string(), version: z.string(), code: sha256 }),
  /** Versions of the owner's software, by its name. */
  software: z.record(z.string(), z.string()),
  parameters: z.record(
    z.string(),
    z.custom<ParameterValue>((value) => value !== undefined),
  ),
  provenance: z.strictObject({
    known: z.custom<ProvenanceKnown>(isRecord),
    inputs: z.custom<UnhashedInputs>(Array.isArray),
  }),
  inputs: z.array(
    z.strictObject({
      name: z.string(),
      kind: z.enum(['raster', 'vector']),
      synthetic: z.strictObject({ size: z.int() }).nullable(),
      ofItems: z.custom<readonly ItemFacts[]>(Array.isArray).optional(),
      files: z.array(z.strictObject({ fileName, sizeBytes: bytes })),
    }),
  ),
  /** Rows to compute, of a run that is cut into tiles. */
  tile: z
    .strictObject({ type: z.literal('part'), number: z.int().min(0), from: z.int().min(0), to: z.int().nullable() })
    .optional(),
  limits: z.strictObject({
    timeoutMs: z.number().optional(),
    memoryBytes: z.number().optional(),
    diskBytes: z.number().optional(),
    processes: z.number().optional(),
  }),
});
export type SealedJob = z.output<typeof sealedJob>;

/** Body of the first call, which carries the one-time token. The secret `session` authorizes all calls after it. A repeat with the same session gets the same answer. */
export const jobBeginning = z.strictObject({ session: z.string().min(32).max(100) });

/** One line without control characters. */
const text = (most: number) =>
  z
    .string()
    .max(most)
    .transform((value) => plainText(value).replaceAll(/\s*\n\s*/g, ' '));

export const progressReport = z.strictObject({
  fraction: z.number().min(0).max(1),
  note: text(500).nullable(),
  /** Lines that the step has printed since the last report. */
  printed: z.array(text(4_000)).max(200),
});
export type ProgressReport = z.input<typeof progressReport>;

const usage = z.strictObject({
  cpuSeconds: z.number().min(0).max(1e9),
  peakMemoryBytes: bytes,
  place: text(255),
});

/** Codes with which a host of children describes its own findings. No others are taken from an executor. */
const hostCode = z.enum([
  ...(['job_crashed', 'job_timeout', 'job_memory_exceeded', 'job_disk_exceeded', 'job_processes_exceeded'] as const),
  ...(['job_not_started', 'disk_full', 'executor_differs', 'executor_stopped', 'executor_failed'] as const),
]);
export type HostCode = z.output<typeof hostCode>;

/** The code of a finding. A code that no executor may send becomes the general one. */
export const asHostCode = (code: string): HostCode => hostCode.safeParse(code).data ?? 'executor_failed';

/** The end of a job, as its executor reports it. The owner measures itself what it can measure. */
export const jobResult = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('done'),
    descriptions: z.unknown(),
    /** The picture is in base64. */
    result: z.strictObject({ summary: z.unknown(), picture: z.base64() }).nullable(),
    gdalVersion: text(100),
    usage,
    inputDigests: z.array(sha256).max(10_000),
    outputs: z.array(z.strictObject({ fileName, sizeBytes: bytes, sha256 })).max(100),
  }),
  z.strictObject({
    type: z.literal('failed'),
    /** The finding of the executor's host. Null if the step's process has reported the failure. */
    found: z.strictObject({ code: hostCode, message: text(2_000) }).nullable(),
    reported: z
      .strictObject({
        kind: z.enum(['input', 'transient', 'bug']),
        code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
        message: text(16_384),
        stack: z.string().max(16_384).transform(plainText).nullable(),
      })
      .nullable(),
  }),
]);
export type JobResult = z.input<typeof jobResult>;
