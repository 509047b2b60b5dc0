import * as z from 'zod';
import { platformErrors, validationDetail, type ErrorCode, type ValidationDetail } from '../error-codes.ts';
import { hasKey } from '../keys.ts';
import {
  completeUpload,
  type CompletedUpload,
  type CompletionField,
  type CompleteUploadInput,
} from '../external-app/complete-upload.ts';
import { createOperation, type CreatedOperation, type CreateOperationInput } from '../external-app/create-operation.ts';
import { initiateUpload, type InitiatedUpload, type InitiateUploadInput } from '../external-app/initiate-upload.ts';
import { getOperation, type OperationStatusInput, type OperationView } from '../external-app/operation-status.ts';
import { renewToken, type RenewedToken, type RenewTokenInput } from '../external-app/renew-token.ts';
import { uploadChunk, type UploadChunkInput, type UploadedChunk } from '../external-app/upload-chunk.ts';
import { userDetail, type UserDetail, type UserDetailInput } from '../external-app/user-detail.ts';
import { getDownloadUrl, type DownloadUrlInput } from '../files/download-url.ts';
import { getFileStatus, type FileStatusInput, type FileStatusView } from '../files/file-status.ts';
import {
  completeFileUpload,
  generateUploadId,
  uploadFileChunk,
  type BegunUpload,
  type CompleteFileUploadInput,
  type GenerateUploadIdInput,
  type UploadedFile,
  type UploadFileChunkInput,
} from '../files/chunked-upload.ts';
import {
  downloadInference,
  getInferenceStatus,
  listModels,
  runInference,
  type KnownJob,
  type KnownModels,
  type RunInferenceInput,
} from '../inference/inference.ts';
import {
  getCatalog,
  getCollection,
  getItem,
  searchItems,
  type CatalogItem,
  type CatalogItems,
  type CatalogNode,
  type GetCatalogInput,
  type GetCollectionInput,
  type GetItemInput,
  type SearchItemsInput,
} from '../stac/read-catalog.ts';
import { collectionOfUploads } from '../file.ts';
import type { Call } from '../wire.ts';
import type { WireChanges } from './wire-changes.ts';
import { assumedLimits, type WireLimits } from './wire-limits.ts';

/** An error answer, in the kit's words. `code` is null where the platform's is not known. */
export interface WireError {
  readonly code: ErrorCode | null;
  readonly message: string | null;
  readonly requestId: string | null;
  readonly details: readonly ValidationDetail[];
  /** The part that the platform wants next, where it said so. */
  readonly expectedPart: number | null;
}

/**
 * Everything the app knows of the platform's wire: paths, field names, body encodings, error shapes.
 * The app speaks to the platform through a profile only, so an integrator who gets the real document
 * writes it here and touches nothing else.
 */
export interface WireProfile {
  readonly name: string;
  /** Headers that carry the API key (spec 5). */
  authenticate(apiKey: string): Record<string, string>;
  readonly calls: {
    readonly renewToken: Call<RenewTokenInput, RenewedToken>;
    readonly userDetail: Call<UserDetailInput, UserDetail>;
    readonly createOperation: Call<CreateOperationInput, CreatedOperation>;
    readonly getOperation: Call<OperationStatusInput, OperationView>;
    readonly initiateUpload: Call<InitiateUploadInput, InitiatedUpload>;
    readonly uploadChunk: Call<UploadChunkInput, UploadedChunk>;
    readonly completeUpload: Call<CompleteUploadInput, CompletedUpload>;
    readonly getFileStatus: Call<FileStatusInput, FileStatusView>;
    readonly getDownloadUrl: Call<DownloadUrlInput, string>;
    readonly generateUploadId: Call<GenerateUploadIdInput, BegunUpload>;
    readonly uploadFileChunk: Call<UploadFileChunkInput, unknown>;
    readonly completeFileUpload: Call<CompleteFileUploadInput, UploadedFile>;
    readonly listModels: Call<object, KnownModels>;
    readonly runInference: Call<RunInferenceInput, KnownJob>;
    readonly getInferenceStatus: Call<{ inferenceId: string }, KnownJob>;
    /** Answers the file itself: only `encode` is asked. */
    readonly downloadInference: Call<{ inferenceJobId: string }, unknown>;
    readonly getCatalog: Call<GetCatalogInput, CatalogNode>;
    readonly getCollection: Call<GetCollectionInput, CatalogNode>;
    readonly getItem: Call<GetItemInput, CatalogItem>;
    readonly searchItems: Call<SearchItemsInput, CatalogItems>;
  };
  decodeError(status: number, body: unknown): WireError;
  /** Query parameter or form field in which a launch hands over the identity token. */
  readonly launchTokenField: string;
  /** Platform pages to which the app's pages send the user, below the platform's address. Null if there is no such page. */
  readonly pages: {
    readonly approvals: string | null;
    readonly item: ((collectionId: string, itemId: string) => string) | null;
  };
  readonly limits: WireLimits;
  /** Delivery of several outputs of a run: one upload for each, or one zip for all. */
  readonly severalOutputs: 'uploads' | 'zip';
  /** Optional fields of a completion (spec 4.4) that the platform refuses: the app leaves them out. */
  readonly refusedFields: readonly CompletionField[];
  /** The collection in which the items of a user's uploads are. */
  uploadsCollection(userId: string): string;
  /** Data that the profile was made from, for a sandbox that speaks it. Null if the profile is code alone. */
  readonly changes: WireChanges | null;
}

/** The API key's header (spec 5); header names are case-insensitive. */
export const apiKeyHeader = 'X-API-KEY';
// @assumed launch-token-field. The next lines are as in 0.1.0: a fork that has changed them merges.
/** @assumed how a launch hands over the token (spec 6 shows no mechanism) */
export const launchTokenField = 'token';

/** @assumed platform-pages: for people (the spec describes none): where operations are approved, and where an item is shown */
export const platformPages: WireProfile['pages'] = {
  approvals: '/approvals',
  item: (collectionId, itemId) => `/catalog/${encodeURIComponent(collectionId)}/${encodeURIComponent(itemId)}`,
};

/** @assumed several-uploads: an approved operation takes several uploads: spec 4.8 shows one */
const severalOutputs = 'uploads';

const lenientError = z.object({
  error: z.string().nullish().catch(null),
  code: z.string().nullish().catch(null),
  requestId: z.string().nullish().catch(null),
  details: z.array(validationDetail).nullish().catch(null),
  expected: z.int().nullish().catch(null),
});

/** The wire as `contract` assumes it. */
export const assumedProfile: WireProfile = {
  name: 'assumed',
  authenticate: (apiKey) => ({ [apiKeyHeader]: apiKey }),
  calls: {
    renewToken,
    userDetail,
    createOperation,
    getOperation,
    initiateUpload,
    uploadChunk,
    completeUpload,
    getFileStatus,
    getDownloadUrl,
    generateUploadId,
    uploadFileChunk,
    completeFileUpload,
    listModels,
    runInference,
    getInferenceStatus,
    downloadInference,
    getCatalog,
    getCollection,
    getItem,
    searchItems,
  },
  decodeError(_status, body) {
    const read = lenientError.safeParse(body);
    const error = read.success ? read.data : {};
    return {
      code: error.code != null && hasKey(platformErrors, error.code) ? error.code : null,
      message: error.error ?? null,
      requestId: error.requestId ?? null,
      details: error.details ?? [],
      expectedPart: error.expected ?? null,
    };
  },
  launchTokenField,
  pages: platformPages,
  limits: assumedLimits,
  severalOutputs,
  refusedFields: [],
  uploadsCollection: collectionOfUploads,
  changes: { name: 'assumed' },
};
