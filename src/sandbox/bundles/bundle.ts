import * as z from 'zod';
import { fileName, fileStatuses, operationStatus, sourceType } from '../../contract/index.ts';
import { newFault } from '../control/fault.ts';
import { renewPolicies } from '../marketplace/launch.ts';
import { platformEndpoints } from '../platform-endpoints.ts';
import { results } from '../referee/verdict.ts';

/** The effect that a cause came after: the nth call of an endpoint had ended. */
const after = z.strictObject({ endpoint: z.enum(platformEndpoints), nth: z.int().min(1) }).nullable();
const label = z.string().regex(/^(operation|upload):\d{1,6}$/);

/** An action on the run, tied to an effect instead of a time. Null `after`: before the app was opened. */
const cause = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('start'),
    after,
    /** The body of the app's `POST api/runs`. */
    body: z.strictObject({
      stepId: z.string().max(200),
      input: z.unknown(),
      parameters: z.record(z.string(), z.unknown()),
    }),
  }),
  z.strictObject({ do: z.literal('approve'), after, operation: label }),
  z.strictObject({ do: z.literal('reject'), after, operation: label }),
  z.strictObject({ do: z.literal('advance'), after, ms: z.int().min(0) }),
  z.strictObject({ do: z.literal('revoke'), after }),
  z.strictObject({
    do: z.literal('fault'),
    after,
    fault: newFault,
    /** Number of times that the fault fired. */
    fired: z.int().min(0),
  }),
]);
export type Cause = z.output<typeof cause>;

/** A call, by what it did. Ids are numbered as they came. */
const effect = z.strictObject({
  endpoint: z.enum(platformEndpoints),
  /** Null where no answer was made. */
  status: z.int().nullable(),
  delivered: z.boolean(),
  operation: label.optional(),
  upload: label.optional(),
  operationStatus: operationStatus.optional(),
  partNumber: z.int().optional(),
  size: z.int().optional(),
  fileSize: z.int().optional(),
  tokenNumber: z.int().optional(),
  code: z.string().max(100).optional(),
  foreign: z.enum(['operation', 'upload', 'key']).optional(),
  isFaulted: z.literal(true).optional(),
});
export type Effect = z.output<typeof effect>;

const output = z.strictObject({
  fileName: z.string().max(255),
  sourceType,
  status: z.enum(fileStatuses),
  /** SHA-256 of a raster's size, place, types and pixels; null for other files. */
  pixelsSha256: z.string().nullable(),
  /** SHA-256 of a vector file's features, or of any other file's bytes; null for rasters. Older bundles lack it. */
  contentSha256: z.string().nullable().optional(),
});

const fileProperties = z.object({
  vectorMappingProperties: z.unknown().optional(),
  layerProperties: z.unknown().optional(),
  geometry: z.string().optional(),
  acquisitionDate: z.string().optional(),
});

/** A file that a run was given. */
const input = z.strictObject({
  /** The item that stood for it, or its place below the app's `INPUT_DIR`. */
  from: z.discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('item'),
      collectionId: z.string(),
      itemId: z.string(),
      sourceType,
      /** Properties that the uploader sent (spec 4.4). */
      properties: fileProperties,
    }),
    z.strictObject({ type: z.literal('local'), path: z.string() }),
  ]),
  fileName,
  sizeBytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Base64; null where it is larger than a bundle takes: who plays it has to bring it. */
  data: z.base64().nullable(),
});
export type BundledInput = z.output<typeof input>;

/** Another one where a bundle of before cannot be read any more. */
export const bundleFormat = 'marketplace-run/2';

/** A run as it can be played again. There is no field in which a key or a token could stand. */
export const bundle = z.strictObject({
  format: z.literal(bundleFormat),
  kit: z.string(),
  /** Initial content of the sandbox's catalog. */
  seed: z.enum(['demo', 'none']),
  renewPolicy: z.enum(renewPolicies),
  /** Besides what the seed makes. */
  inputs: z.array(input),
  causes: z.array(cause),
  effects: z.array(effect),
  /** Result of each rule. */
  verdict: z.record(z.string(), z.enum(results)),
  outputs: z.array(output),
  /** Reasons why the run cannot be played again; empty if it can. */
  obstacles: z.array(z.string()),
});
export type Bundle = z.output<typeof bundle>;
