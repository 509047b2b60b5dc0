import * as z from 'zod';

/**
 * Stable error codes. The spec shows statuses and some messages but no body shape (section 7), so the
 * body and these codes are the kit's.
 * @assumed error-body
 */
export const errorCodes = [
  'validation_failed',
  'malformed_json',
  'malformed_form',
  'unsupported_media_type',
  'body_too_large',
  'path_not_found',
  'method_not_allowed',
  'unauthorized',
  'authentication_failed',
  'permission_denied',
  'token_not_found',
  'token_revoked',
  'token_expired',
  'operation_not_found',
  'operation_not_approved',
  'operation_not_requested',
  'idempotency_key_reused',
  'upload_session_not_found',
  'chunk_out_of_order',
  'chunk_conflict',
  'chunk_too_large',
  'upload_incomplete',
  'upload_completed',
  'size_mismatch',
  'insufficient_storage',
  'file_not_found',
  'file_too_large',
  'catalog_not_found',
  'collection_not_found',
  'item_not_found',
  'asset_not_available',
  'model_not_found',
  'model_not_active',
  'inference_job_not_found',
  'inference_job_not_done',
  'inference_unavailable',
  'link_invalid',
  'link_expired',
  'app_not_found',
  'user_not_found',
  'key_not_found',
  'launch_not_found',
  'misdirected_request',
  'foreign_origin',
  'loopback_only',
  'admin_key_required',
  'busy',
  'search_timeout',
  'too_many_requests',
  'injected_fault',
  'internal_error',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

export const validationDetail = z.object({
  /** Dotted path of the value: `sortby.0.field`. Empty for the body as a whole. */
  path: z.string(),
  message: z.string(),
});
export type ValidationDetail = z.infer<typeof validationDetail>;

/** The error body that the sandbox sends. */
export const errorBody = z.object({
  error: z.string(),
  code: z.enum(errorCodes),
  requestId: z.string(),
  details: z.array(validationDetail).optional(),
  /** `chunk_out_of_order` only: the part number that is next. */
  expected: z.int().optional(),
  /** `chunk_out_of_order` only: the part number that came. */
  received: z.int().optional(),
});
export type ErrorBody = z.infer<typeof errorBody>;

/** Zod's issues as the contract's `details`. */
export function validationDetails(error: z.ZodError): ValidationDetail[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }];
    return issue.keys.map((key) => ({
      path: [...issue.path, key.slice(0, 100)].join('.'),
      message: 'is not known here',
    }));
  });
}
