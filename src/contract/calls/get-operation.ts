import * as z from 'zod';
import { operationStatus } from '../operation.ts';
import { instant, tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { noOperation, ofToken } from './errors.ts';

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
export const getOperation = defineCall<OperationStatusInput, OperationView>()({
  endpoint: 'operation.status',
  group: 'External app',
  section: '4.8',
  step: 4,
  summary: 'Status of an operation',
  description:
    'Tells whether the user has decided. Poll every 2 to 5 seconds while the status is REQUESTED. APPROVED lets the app upload; REJECTED and EXPIRED end the operation. Stop polling after any of the three.',
  method: 'GET',
  path: '/public/external-app/operation/:token',
  query,
  response,
  descriptions: {
    expiresAt: 'Time at which an undecided operation expires, ISO 8601, UTC.',
    name: 'Name of the operation, as the app gave it.',
    status:
      'State of the operation: REQUESTED, APPROVED, REJECTED or EXPIRED. Ask again every 2 to 5 seconds while it is REQUESTED.',
  },
  errors: { ...ofToken, ...noOperation, 400: null },
  shownFields: ['status'],
  // After a lost answer the next poll asks again, and nothing sooner (spec 4.8, rule 2).
  retries: false,
  assumptions: [
    {
      id: 'operation-status',
      assumes: 'step 4 also answers the operation’s name and times',
      probe: 'get-operation',
      about: 'answer',
    },
  ],
  decode: (body) => read.parse(body),
});
