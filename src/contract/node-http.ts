import { createRequire } from 'node:module';

/** `node:http` as CommonJS has it: an `import` reads each of its exports, and for `WebSocket` Node loads a whole HTTP client of 5 MiB. */
export const http = createRequire(import.meta.url)('node:http') as typeof import('node:http');
