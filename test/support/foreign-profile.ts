/** A wire profile with some fifty differences, each of which a platform may have. */
import type { WireChanges } from '../../src/contract/index.ts';

export const foreignProfile = {
  name: 'foreign',
  apiKey: { header: 'X-Partner-Key', prefix: 'Partner ' },
  limits: { firstPartNumber: 0, chunkBytes: 64_000_000, pollIntervalMs: { min: 3_000, max: 5_000 } },
  errors: {
    fields: { error: 'fault.text', code: 'fault.kind', requestId: 'fault.trace' },
    codes: { token_expired: 'session-over' },
  },
  calls: {
    userDetail: {
      path: '/v2/me',
      request: { token: { in: 'header', name: 'X-Session' } },
      response: {
        id: 'data.uid',
        email: 'data.mail',
        name: { join: ['data.first', 'data.last'] },
        organization: 'data.company',
      },
    },
    renewToken: {
      method: 'PUT',
      path: '/v2/sessions/:token',
      response: { token: 'session.jwt', expiresAt: { name: 'session.expires', as: 'seconds' } },
    },
    searchItems: { path: '/v2/scenes/search', response: { features: 'results', numberMatched: 'total' } },
    getItem: { path: '/v2/scenes/:collectionId/:id' },
    createOperation: {
      path: '/v2/sessions/:token/jobs',
      constants: { operationType: 'PROCESSING', version: 2 },
      request: { name: 'title', description: 'abstract', idempotencyKey: { in: 'header', name: 'X-Request-Key' } },
      response: { operationId: 'job.id', expiresAt: { name: 'job.expires_in', as: 'seconds-from-now' } },
    },
    getOperation: {
      path: '/v2/sessions/:token/jobs/:operationId',
      response: {
        operationId: 'job.id',
        name: 'job.title',
        createdAt: 'job.created',
        updatedAt: 'job.changed',
        expiresAt: { name: 'job.expires', as: 'seconds' },
        status: {
          name: 'job.verdict',
          values: { REQUESTED: 'open', APPROVED: 'granted', REJECTED: 'denied', EXPIRED: 'late' },
        },
      },
    },
    initiateUpload: {
      path: '/v2/sessions/:token/uploads',
      request: { operationId: 'jobId', fileName: 'filename', sourceType: 'kind' },
      response: { uploadId: 'upload.id', key: 'upload.handle' },
    },
    uploadChunk: {
      method: 'PUT',
      path: '/v2/sessions/:token/uploads/:uploadId/parts',
      file: 'bytes',
      constants: { mode: 'append' },
      request: { key: 'handle', partNumber: 'index', partCount: 'totalParts' },
    },
    completeUpload: {
      path: '/v2/sessions/:token/uploads/:uploadId/complete',
      request: { key: 'handle', fileSize: 'totalBytes', sourceType: 'kind', partCount: 'totalParts' },
      response: { fileId: 'file.id', originalName: 'file.name', size: 'file.bytes', createdAt: 'file.created' },
      unfinished: 202,
    },
  },
} as const satisfies WireChanges;
