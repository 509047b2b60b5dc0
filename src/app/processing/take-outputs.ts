import { join } from 'node:path';
import * as z from 'zod';
import { movePlainFile } from '../../files/index.ts';
import { outputsOf, type AnyStep } from '../../steps/step.ts';
import { readInputs } from './provenance.ts';

/** A file that is ready to be uploaded. */
export interface RunOutput {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** Schema for the answer of a step's child. */
export const answered = z.object({
  outputs: z
    .array(z.object({ name: z.string(), sizeBytes: z.int().positive(), sha256: z.hash('sha256') }))
    .min(1)
    .max(100),
  inputs: readInputs,
  gdalVersion: z.string().max(100),
  /** Read by `readResult`. */
  result: z.unknown().optional(),
});

/** Takes the files that the child has left, by the names of the declaration: a child may answer anything. */
export async function takeOutputs(step: AnyStep, answer: unknown, workFolder: string): Promise<RunOutput[]> {
  const said = answered.parse(answer).outputs;
  const outputs: RunOutput[] = [];
  for (const [name, { fileName }] of outputsOf(step)) {
    const file = said.find((one) => one.name === name);
    if (!file) continue;
    const path = join(workFolder, 'output', fileName);
    await movePlainFile(join(workFolder, 'step', fileName), path);
    outputs.push({ path, sizeBytes: file.sizeBytes, sha256: file.sha256 });
  }
  return outputs;
}
