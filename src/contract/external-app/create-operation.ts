import * as z from 'zod';
import { limits } from '../limits.ts';
import { fillPath, instant, isShallow, tolerant, tooDeep, type Call } from '../wire.ts';

const path = '/public/external-app/operation/:token';
/** @assumed idempotency-key */
const idempotencyHeader = 'Idempotency-Key';

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

/** Step 3: POST /operation/{token} (spec 4.8). */
export const createOperation = {
  endpoint: 'operation.create',
  method: 'POST',
  path,
  idempotencyHeader,
  request,
  response,
  encode: ({ token, idempotencyKey, operation }: CreateOperationInput) => ({
    method: 'POST',
    path: fillPath(path, { token }),
    headers: { [idempotencyHeader]: idempotencyKey },
    body: { kind: 'json', value: operation },
  }),
  decode: (body: unknown): CreatedOperation => read.parse(body),
} as const satisfies Call<CreateOperationInput, CreatedOperation> & Record<string, unknown>;
