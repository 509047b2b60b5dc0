const ofFiles = { 401: 'Unauthorized Request', 403: 'Permission Denied' };
const ofInference = { ...ofFiles, 404: 'Inference Job not found' };
const ofToken = { 403: 'Authentication failed' };
const noSession = { 404: 'Upload session not found' };

/** Error messages of the interface (sections 4.3 to 4.8 and 7), by call and status. Other statuses use HTTP's reason phrase. */
export const errorMessages: Readonly<Record<string, Readonly<Partial<Record<number, string>>>>> = {
  'file.upload': { ...ofFiles, 400: 'Bad Request', 500: 'Internal Server Error' },
  'file.generate': { ...ofFiles, 500: 'Failed to generate upload ID' },
  'file.chunk': { ...ofFiles, ...noSession, 500: 'Failed to upload chunk' },
  'file.complete': { ...ofFiles, ...noSession, 500: 'Failed to complete upload' },
  'file.status': { ...ofFiles, 404: 'File not found', 500: 'Internal Server Error' },
  'file.download': { ...ofFiles, 404: 'File not found', 500: 'Internal Server Error' },
  'inference.models': { ...ofFiles, 500: 'Internal Server Error' },
  'inference.run': { ...ofFiles, 404: 'File not found', 500: 'Error occurred while running inference.' },
  'inference.status': { ...ofInference, 500: 'Internal Server Error' },
  'inference.download': {
    ...ofInference,
    400: 'InferenceJob id cannot be null or empty',
    500: 'Error occurred while streaming the file',
  },
  'stac.browse': { 401: 'Unauthorized Request' },
  'stac.search': { 401: 'Unauthorized Request' },
  'token.renew': { ...ofToken, 404: 'Token not found' },
  'user.detail': { ...ofToken, 404: 'Token not found' },
  'operation.create': { ...ofToken, 404: 'Token not found' },
  'operation.status': { ...ofToken, 404: 'Operation not found' },
  'upload.initiate': { ...ofToken, 404: 'Operation not found' },
  'upload.chunk': { ...ofToken, ...noSession },
  'upload.complete': { ...ofToken, ...noSession, 500: 'Failed to complete upload' },
};
