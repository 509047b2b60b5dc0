import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import { ChildJobError, type FileDigests } from '../../child/index.ts';
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
  const moved = await moveOutputs(step, stepFolder, outputFolder);
  requireOutputs(step, moved);
  const paths = [...moved.values()];
  if (paths.length === 0) throw broken(step, 'left no output');
  const found = await digests.of(paths);
  return found.map((digest, i) => {
    const path = paths[i] ?? '';
    const own = descriptions.filter(({ fileName }) => fileName === basename(path)).slice(0, 1);
    return { path, ...digest, ...(own.length > 0 && { descriptions: own }) };
  });
}

/**
 * Moves the output files that a step has left, in the order of its declaration. Call it when the step's process is gone. Returns
 * their new paths by their names. Throws `NotAPlainFileError`.
 */
export async function moveOutputs(step: AnyStep, from: string, to: string): Promise<Map<string, string>> {
  const moved = new Map<string, string>();
  for (const [, { fileName }] of outputsOf(step)) {
    const isThere = await lstat(join(from, fileName)).then(
      () => true,
      () => false,
    );
    if (!isThere) continue;
    const path = join(to, fileName);
    await movePlainFile(join(from, fileName), path);
    moved.set(fileName, path);
  }
  return moved;
}

/** Throws `ChildJobError` if a file is not what its executor has sent: something changed it on the way, and another attempt may succeed. */
export function requireDigest(path: string, sha256: string, sent: ReadonlyMap<string, string>): void {
  if ((sent.get(basename(path)) ?? sha256) === sha256) return;
  throw new ChildJobError('executor_answer_damaged', `${basename(path)} did not arrive as it was sent`, {
    kind: 'transient',
  });
}

/** Throws `KitError` if a file that is not optional is missing. */
export function requireOutputs(step: AnyStep, moved: ReadonlyMap<string, string>): void {
  const missing = outputsOf(step).find(([, { fileName, optional }]) => !optional && !moved.has(fileName));
  if (missing) throw broken(step, `left no ${missing[1].fileName}`);
}

const broken = (step: AnyStep, what: string) =>
  new KitError('step_broke_its_declaration', `step ${step.id} ${what}`, { status: 500 });
