import * as z from 'zod';
import { limits } from '../limits.ts';
import { instant, isShallow, tolerant, tooDeep } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofBody, ofToken } from './errors.ts';

/** @assumed operation-request: body of step 3 (spec 4.8 shows none) */
const request = z.object({
  name: z
    .string()
    .min(1, 'must not be empty')
    .refine(
      (name) => [...name].length <= limits.operationNameLength,
      `must be at most ${limits.operationNameLength} characters`,
    ),
  description: z.string().optional(),
  parameters: z
    .record(z.string(), z.unknown())
    .refine(isShallow, { message: tooDeep, abort: true })
    .refine(
      (parameters) => Buffer.byteLength(JSON.stringify(parameters)) <= limits.operationParametersBytes,
      `must be at most ${limits.operationParametersBytes} bytes of JSON`,
    )
    .optional(),
});

/** @assumed created-operation: response of step 3, but for `operationId` (spec 4.8) */
const response = z.object({
  operationId: z.string().min(1),
  status: z.literal('REQUESTED'),
  createdAt: instant,
  expiresAt: instant,
});
const read = tolerant(response, ['operationId']);

/** Body of step 3, create an operation (spec 4.8). */
export type OperationRequest = z.output<typeof request>;
/**
 * `idempotencyKey` is sent as the `Idempotency-Key` header: the same key, launch and body give the same
 * operation again. A platform that ignores the header makes a second operation when an answer was lost.
 */
export type CreateOperationInput = { token: string; idempotencyKey: string; operation: OperationRequest };
/** Answer to step 3, create an operation (spec 4.8). */
export type CreatedOperation = z.output<typeof read>;

/** Step 3: POST /operation/{token} (spec 4.8). @assumed idempotency-key: the header */
export const createOperation = defineCall<CreateOperationInput, CreatedOperation>()({
  endpoint: 'operation.create',
  group: 'External app',
  section: '4.8',
  step: 3,
  summary: 'Create an operation',
  description:
    'Asks the user for approval of what the app is about to do. The user reads the name, the description and the parameters, and decides on the platform within 30 minutes. The same `Idempotency-Key`, launch and body give the same operation again.',
  method: 'POST',
  path: '/public/external-app/operation/:token',
  headers: { idempotencyKey: 'Idempotency-Key' },
  request,
  response,
  descriptions: {
    'in.description': 'Text that the user reads before the decision.',
    expiresAt: 'Time at which an undecided operation expires, ISO 8601, UTC.',
    'in.name': 'Name of the operation that the user reads before the decision: 1 to 200 characters.',
    status: 'Always REQUESTED: the user has not decided yet.',
  },
  errors: { ...ofToken, ...ofBody },
  example: {
    name: 'NDVI of olinda-landsat7',
    description: 'Computes the vegetation index of one scene.',
    parameters: { step: 'ndvi', item: 'olinda-landsat7' },
  },
  body: 'operation',
  shownFields: ['operationId'],
  assumptions: [
    {
      id: 'operation-request',
      assumes: 'step 3 takes `{name, description?, parameters?}`',
      probe: 'create-operation',
      about: 'request',
    },
    {
      id: 'idempotency-key',
      assumes: 'the same `Idempotency-Key` gives the same operation again',
      probe: 'create-operation',
    },
    {
      id: 'created-operation',
      assumes: 'step 3 also answers `status`, `createdAt` and `expiresAt`',
      probe: 'create-operation',
      about: 'answer',
    },
  ],
  decode: (body) => read.parse(body),
});
