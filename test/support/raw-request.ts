import { createConnection } from 'node:net';
import type { TestSandbox } from './sandbox.ts';

/** Sends the bytes of a request that no HTTP client would send. Resolves with the whole answer. */
export function rawRequest(sandbox: TestSandbox, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(Number(new URL(sandbox.url).port), '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (part: string) => (answer += part));
    socket.on('end', () => resolve(answer)).on('error', reject);
  });
}
