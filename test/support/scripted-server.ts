import { createServer, type Socket } from 'node:net';
import { cleanUpLater } from './cleanup.ts';

export interface ScriptedServer {
  readonly url: string;
  /** Every request as it came over the wire, head and body. */
  readonly requests: string[];
}

/** Response to a request: these bytes, or, for `cut`, a cut of the connection. */
export type ScriptedAnswer = string | Buffer | { afterMs: number; answer: string };

/**
 * A server that knows no HTTP library: it collects raw requests and answers each with the next of
 * `answers` (the last one again and again). So a client is checked by bytes that were written by hand.
 */
export async function startScriptedServer(...answers: ScriptedAnswer[]): Promise<ScriptedServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let buffered = '';
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (part: string) => {
      buffered += part;
      const head = buffered.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/^content-length: (\d+)/im.exec(buffered.slice(0, head))?.[1] ?? 0);
      if (buffered.length < head + 4 + length) return;
      requests.push(buffered.slice(0, head + 4 + length));
      buffered = buffered.slice(head + 4 + length);
      respond(socket, answers[Math.min(requests.length, answers.length) - 1]!);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, requests };
}

function respond(socket: Socket, answer: ScriptedAnswer): void {
  if (answer === 'cut') socket.destroy();
  else if (typeof answer === 'string' || Buffer.isBuffer(answer)) socket.write(answer);
  else setTimeout(() => socket.write(answer.answer), answer.afterMs).unref();
}

/** A raw JSON answer. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): string {
  const text = JSON.stringify(body);
  const lines = Object.entries({
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(text)),
    ...headers,
  });
  return `HTTP/1.1 ${status} X\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`;
}
