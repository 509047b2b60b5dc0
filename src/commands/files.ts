/** Files that a command's options name. */
import { access, constants, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type * as z from 'zod';
import { KitError } from '../contract/index.ts';
import { codeOf } from '../files/index.ts';

/** Reads a JSON file. `wanted` says what it must be. Throws `KitError`. */
export async function readJson<T>(path: string, schema: z.ZodType<T>, wanted: string): Promise<T> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${codeOf(error)})`);
  });
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new KitError('bad_arguments', `${path} must be ${wanted}`, { cause });
  }
}

/** Checks, before long work begins, that a file can be written at its end. Throws `KitError`. */
export async function requireWritable(path: string): Promise<void> {
  const isThere = await stat(path).catch(() => null);
  if (isThere?.isDirectory()) throw new KitError('bad_arguments', `${path} is a folder, and must be a file to write`);
  await access(isThere ? path : dirname(path), constants.W_OK).catch((error: unknown) => {
    throw new KitError('bad_arguments', `${path} cannot be written (${codeOf(error)})`);
  });
}
