import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import type { FileDigests } from '../../child/index.ts';
import { movePlainFile } from '../../files/index.ts';
import type { OutputDescription } from './output-description.ts';
import { outputsOf, type AnyStep } from '../../steps/step.ts';

/** A file that is ready to be uploaded. Size and digest are the host's own measurement. */
export interface RunOutput {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  /** Facts that its step's process read from it, for people and catalogs; of a zip, those of each file in it. Default: none. */
  readonly descriptions?: readonly OutputDescription[];
}

/** Schema for the answer of a step's process. Its outputs are the files that it has left; `readResult` and `readDescriptions` read the rest. */
export const answered = z.object({ result: z.unknown().optional(), descriptions: z.unknown().optional() });

/**
 * Takes the files that a step has left in its folder, by the names of its declaration, and measures them. Call it when the
 * step's process is gone: until then it may write on. Throws `NotAPlainFileError`, and `KitError` for a missing file.
 */
export async function takeOutputs(
  step: AnyStep,
  { stepFolder, outputFolder }: { readonly stepFolder: string; readonly outputFolder: string },
  digests: FileDigests,
  descriptions: readonly OutputDescription[] = [],
): Promise<RunOutput[]> {
  const paths: string[] = [];
  for (const [, { fileName, optional }] of outputsOf(step)) {
    const from = join(stepFolder, fileName);
    const isThere = await lstat(from).then(
      () => true,
      () => false,
    );
    if (!isThere && optional) continue;
    if (!isThere) throw broken(step, `left no ${fileName}`);
    const path = join(outputFolder, fileName);
    await movePlainFile(from, path);
    paths.push(path);
  }
  if (paths.length === 0) throw broken(step, 'left no output');
  const found = await digests.of(paths);
  return found.map((digest, i) => {
    const path = paths[i] ?? '';
    const own = descriptions.filter(({ fileName }) => fileName === basename(path)).slice(0, 1);
    return { path, ...digest, ...(own.length > 0 && { descriptions: own }) };
  });
}

const broken = (step: AnyStep, what: string) =>
  new KitError('step_broke_its_declaration', `step ${step.id} ${what}`, { status: 500 });
