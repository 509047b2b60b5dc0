/** The files that a step reads, as its host has measured them. */
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import * as z from 'zod';
import type { FileDigests } from '../../child/index.ts';
import type { ItemFacts } from '../../raster/index.ts';
import type { ReadFile, ReadInputs } from './provenance.ts';

/** Files of a step's inputs before their digests are known. */
export type UnhashedInputs = readonly {
  readonly name: string;
  readonly files: readonly Omit<ReadFile, 'sha256'>[];
}[];

/** Asked by the step's process when the step has ended: the digests go into the outputs' metadata. */
export const digestsQuestion = z.strictObject({ type: z.literal('input-digests') });
export type DigestsQuestion = z.output<typeof digestsQuestion>;

/** SHA-256 of each file, in the order of the inputs and of their files. */
export const digestsAnswer = z.array(z.hash('sha256'));

interface InputFiles {
  readonly name: string;
  /** Absolute. */
  readonly paths: readonly string[];
  readonly ofItems?: readonly ItemFacts[] | undefined;
}

/** Names and sizes of the files that a step will read. */
export async function measureInputs(inputs: readonly InputFiles[]): Promise<UnhashedInputs> {
  return Promise.all(
    inputs.map(async ({ name, paths, ofItems = [] }) => ({
      name,
      files: await Promise.all(
        paths.map(async (path, i) => ({
          // A name may hold what no terminal is to be shown, and what parts a path elsewhere.
          fileName: basename(path).replace(/[\p{Cc}\\]/gu, '_'),
          sizeBytes: (await stat(path)).size,
          ...itemFacts(ofItems[i]),
        })),
      ),
    })),
  );
}

function itemFacts(
  { observedAt, bands, sourceType, bbox }: ItemFacts = { observedAt: null, bands: [] },
): Pick<ReadFile, 'observedAt' | 'bands' | 'sourceType' | 'bbox'> {
  return {
    ...(sourceType !== undefined && { sourceType }),
    ...(bbox !== undefined && { bbox: [...bbox] }),
    ...(observedAt !== null && { observedAt }),
    ...(bands.length > 0 && { bands: bands.map((band) => ({ ...band, names: [...band.names] })) }),
  };
}

/** Hashes the files on the digests' thread, while the step works on them. */
export async function hashInputs(inputs: readonly InputFiles[], digests: FileDigests): Promise<readonly string[]> {
  const found = await digests.of(inputs.flatMap(({ paths }) => paths));
  return found.map(({ sha256 }) => sha256);
}

/** The inputs with their digests, which have the order of the files. */
export function hashedInputs(inputs: UnhashedInputs, sha256s: readonly string[]): ReadInputs {
  const left = [...sha256s];
  return inputs.map(({ name, files }) => ({
    name,
    files: files.map((file) => {
      const { fileName, sizeBytes, ...facts } = file;
      return { fileName, sizeBytes, sha256: left.shift() ?? '', ...facts };
    }),
  }));
}
