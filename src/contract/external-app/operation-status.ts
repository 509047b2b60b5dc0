import * as z from 'zod';
import { operationStatus } from '../operation.ts';
import { fillPath, instant, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/operation/:token';

/** Step 4's query is the spec's own (section 4.8). */
const query = z.object({ operationId: z.string('is required, once').min(1, 'must not be empty') });

/** @assumed operation-status: response of step 4, but for `status` (spec 4.8) */
const response = z.object({
  operationId: z.string(),
  status: operationStatus,
  name: z.string(),
  createdAt: instant,
  updatedAt: instant,
  expiresAt: instant,
});
const read = tolerant(response, ['status']);

/** Input of step 4, the status of an operation (spec 4.8). */
export type OperationStatusInput = { token: string; operationId: string };
/** Answer to step 4, the status of an operation (spec 4.8). */
export type OperationView = z.output<typeof read>;

/** Step 4: GET /operation/{token}?operationId= (spec 4.8). */
export const getOperation = {
  endpoint: 'operation.status',
  method: 'GET',
  path,
  query,
  response,
  encode: ({ token, operationId }: OperationStatusInput) => ({
    method: 'GET',
    path: fillPath(path, { token }),
    query: { operationId },
  }),
  decode: (body: unknown): OperationView => read.parse(body),
} as const satisfies Call<OperationStatusInput, OperationView> & Record<string, unknown>;
