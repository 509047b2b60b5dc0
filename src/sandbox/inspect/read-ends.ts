import { open, readFile, stat } from 'node:fs/promises';
import { notA } from './facts.ts';

/** The first and the last bytes of a file, at most `length` of each. */
export async function readEnds(path: string, length = 4096): Promise<{ start: Buffer; end: Buffer; size: number }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const wanted = Math.min(size, length);
    const start = await file.read(Buffer.alloc(wanted), 0, wanted, 0);
    const end = await file.read(Buffer.alloc(wanted), 0, wanted, size - wanted);
    return { start: start.buffer, end: end.buffer, size };
  } finally {
    await file.close();
  }
}

const maxJsonBytes = 64 * 1024 * 1024;

/** A whole JSON file. Throws `notA(what)` for one that is too large or no JSON. */
export async function readJson(path: string, what: string): Promise<unknown> {
  if ((await stat(path)).size > maxJsonBytes) throw notA(`${what} of at most ${maxJsonBytes} bytes`);
  return readFile(path, 'utf8')
    .then((text): unknown => JSON.parse(text))
    .catch(() => {
      throw notA(what);
    });
}
