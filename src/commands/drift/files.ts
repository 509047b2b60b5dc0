import { access, constants, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import type { Observations } from '../../drift/compare.ts';
import type { KnownDifference } from '../../drift/report.ts';
import { levels } from '../../drift/target.ts';

/** A file of `--expect`. */
export const knownDifferences: z.ZodType<KnownDifference[]> = z.array(
  z.strictObject({ exchange: z.string(), fact: z.string() }),
);
/** A file of `--record`. */
export const recording = z.object({
  format: z.literal('marketplace-drift-record/1'),
  level: z.enum(levels),
  missing: z.record(z.string(), z.string()),
  exchanges: z.array(
    z.object({
      name: z.string(),
      call: z.custom<Observations['exchanges'][number]['call']>((value) => value === null || typeof value === 'string'),
      method: z.string(),
      path: z.string(),
      requestBody: z.string().nullable(),
      responseBody: z.string(),
      facts: z.record(z.string(), z.string()),
      unreadable: z.string().nullable(),
      isOfApp: z.boolean(),
    }),
  ),
});

/** Throws `KitError` where the file is not what is wanted. */
export async function readJson<T>(path: string, schema: z.ZodType<T>, wanted: string): Promise<T> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${error.code})`);
  });
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new KitError('bad_arguments', `${path} must be ${wanted}`, { cause });
  }
}

/** Before anything is asked of a platform: what cannot be kept at the end is told now. Throws `KitError`. */
export async function requireWritable(path: string): Promise<void> {
  const isThere = await stat(path).catch(() => null);
  if (isThere?.isDirectory()) throw new KitError('bad_arguments', `${path} is a folder, and must be a file to write`);
  await access(isThere ? path : dirname(path), constants.W_OK).catch((error: NodeJS.ErrnoException) => {
    throw new KitError('bad_arguments', `${path} cannot be written (${error.code})`);
  });
}
