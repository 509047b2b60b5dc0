export * from './abortable-sleep.ts';
export type { CollectionEntry } from './browse-catalog.ts';
export { DownloadError, requireAllowed, type Download } from './download.ts';
export { createHttpTransport, type HttpTransport, type SendOptions } from './http-transport.ts';
export * from './identity-token.ts';
export * from './platform-client.ts';
export * from './platform-error.ts';
export { reach } from './reach.ts';
export { defaultRetryPolicy, parseRetryAfter, type RetryPolicy } from './retry-policy.ts';
