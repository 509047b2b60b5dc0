import { platformErrors, type ErrorCode } from '../error-codes.ts';

const messageOf = (code: ErrorCode): string => platformErrors[code].message;

/** Errors of the calls of each group (sections 5 and 7), by status. */
export const ofCatalog = { 401: messageOf('unauthorized'), 500: null } as const;
export const ofFiles = { 401: messageOf('unauthorized'), 403: messageOf('permission_denied') } as const;
export const ofInference = { ...ofFiles, 404: messageOf('inference_job_not_found') } as const;
export const ofToken = {
  403: messageOf('authentication_failed'),
  404: messageOf('token_not_found'),
  500: null,
} as const;
export const noFile = { 404: messageOf('file_not_found') } as const;
export const noOperation = { 404: messageOf('operation_not_found') } as const;
export const noSession = { 404: messageOf('upload_session_not_found') } as const;
/** A body that is wrong, or of another type than the call takes. */
export const ofBody = { 400: null, 415: null } as const;
