import { createServer } from 'node:net';
import { randomInt } from 'node:crypto';

/** Below those that Linux gives to connections, which come and go by the hundred. */
const [from, to] = [10_000, 32_768];

/** A port of this machine that nobody listens on just now. Where a server can be asked for its port, 0 is better. */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = randomInt(from, to);
    const isFree = await new Promise<boolean>((resolve, reject) => {
      const server = createServer().once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' && tries < 100 ? resolve(false) : reject(error),
      );
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
