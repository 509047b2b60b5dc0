export * from './abortable-sleep.ts';
export * from './identity-token.ts';
export * from './platform-client.ts';
export * from './platform-error.ts';
export { defaultRetryPolicy, type RetryPolicy } from './retry-policy.ts';
