import { platformErrors, type ErrorCode } from './error-codes.ts';

const messageOf = (code: ErrorCode): string => platformErrors[code].message;
const ofFiles = { 401: messageOf('unauthorized'), 403: messageOf('permission_denied') };
const noFile = { 404: messageOf('file_not_found') };
const ofInference = { ...ofFiles, 404: messageOf('inference_job_not_found') };
const ofToken = { 403: messageOf('authentication_failed') };
const noToken = { 404: messageOf('token_not_found') };
const noOperation = { 404: messageOf('operation_not_found') };
const noSession = { 404: messageOf('upload_session_not_found') };

/** Error messages of the interface (sections 4.3 to 4.8 and 7), by call and status. Other statuses use HTTP's reason phrase. */
export const errorMessages: Readonly<Record<string, Readonly<Partial<Record<number, string>>>>> = {
  'file.upload': { ...ofFiles, 400: 'Bad Request', 500: 'Internal Server Error' },
  'file.generate': { ...ofFiles, 500: 'Failed to generate upload ID' },
  'file.chunk': { ...ofFiles, ...noSession, 500: 'Failed to upload chunk' },
  'file.complete': { ...ofFiles, ...noSession, 500: 'Failed to complete upload' },
  'file.status': { ...ofFiles, ...noFile, 500: 'Internal Server Error' },
  'file.download': { ...ofFiles, ...noFile, 500: 'Internal Server Error' },
  'inference.models': { ...ofFiles, 500: 'Internal Server Error' },
  'inference.run': { ...ofFiles, ...noFile, 500: 'Error occurred while running inference.' },
  'inference.status': { ...ofInference, 500: 'Internal Server Error' },
  'inference.download': {
    ...ofInference,
    400: 'InferenceJob id cannot be null or empty',
    500: 'Error occurred while streaming the file',
  },
  'stac.browse': { 401: messageOf('unauthorized') },
  'stac.search': { 401: messageOf('unauthorized') },
  'token.renew': { ...ofToken, ...noToken },
  'user.detail': { ...ofToken, ...noToken },
  'operation.create': { ...ofToken, ...noToken },
  'operation.status': { ...ofToken, ...noOperation },
  'upload.initiate': { ...ofToken, ...noOperation },
  'upload.chunk': { ...ofToken, ...noSession },
  'upload.complete': { ...ofToken, ...noSession, 500: 'Failed to complete upload' },
};
