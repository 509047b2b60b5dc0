/** A wire profile with every kind of difference that data can say. */
import type { WireChanges } from '../../src/contract/index.ts';

export const strangeProfile = {
  name: 'strange',
  itemId: 'title',
  limits: { firstPartNumber: 0 },
  errors: { statuses: { '410': 'token_expired' } },
  calls: {
    userDetail: { response: { id: 'data.uid', name: { join: ['data.first', 'data.last'] } } },
    createOperation: {
      constants: { operationType: 'PROCESSING', 'meta.version': 2 },
      request: { name: 'title' },
      response: { operationId: 'id', expiresAt: { name: 'expires_in', as: 'seconds-from-now' } },
    },
    getOperation: {
      constants: { verbose: true },
      response: {
        status: {
          name: 'state',
          values: { REQUESTED: 'open', APPROVED: 'Granted', REJECTED: 'denied', EXPIRED: 'late' },
        },
        expiresAt: { as: 'seconds' },
      },
    },
    uploadChunk: { file: 'chunk', constants: { kind: 'part' }, request: { partCount: 'totalParts' } },
    completeUpload: { request: { partCount: 'totalParts' }, unfinished: 202 },
  },
} as const satisfies WireChanges;
