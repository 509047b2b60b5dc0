import * as z from 'zod';
import { isPathSegment } from '../../contract/index.ts';
import { runInput } from './run-input.ts';
import type { ParameterValue } from './step-parameters.ts';

const sha256 = z.hash('sha256');

/** Text without control characters, which a terminal shows unchanged. */
const printable = (most: number) =>
  z
    .string()
    .regex(/^\P{Cc}*$/u)
    .max(most);

/** Name of a file within a folder, never a path elsewhere. This rule also checks names that a foreign file contains. */
const plainName = printable(255).refine((name) => isPathSegment(name) && !/[/\\]/.test(name));

/** Metadata of a band from its catalog item. The computed values depend on it. */
const itemBand = z.strictObject({
  names: z.array(printable(200)).max(10),
  scale: z.strictObject({ factor: z.number(), offset: z.number() }).nullable(),
  nodata: z.number().nullable(),
});

/** An input file of a run. Facts of its catalog item: `observedAt` is its `datetime`, `bands` describes its values, `bbox` is in degrees. */
const readFile = z.strictObject({
  fileName: plainName,
  sizeBytes: z.int().min(0),
  sha256,
  observedAt: z.iso.datetime().optional(),
  sourceType: printable(64).optional(),
  bbox: z.tuple([z.number(), z.number(), z.number(), z.number()]).optional(),
  bands: z.array(itemBand).max(10_000).optional(),
});
export type ReadFile = z.output<typeof readFile>;

/** The files of each of a step's inputs, in the order in which it was given them; none of an input that code makes. */
export const readInputs = z.array(z.strictObject({ name: plainName, files: z.array(readFile).max(10_000) })).max(20);
export type ReadInputs = z.output<typeof readInputs>;

const software = z.record(printable(100), printable(200));

/** Facts about the making of a file. They are enough to make it again, and to check that the result is the same. */
export const provenance = z.strictObject({
  /** `code`: SHA-256 of the step's own files. */
  step: z.strictObject({ id: printable(64), version: printable(64), code: sha256 }),
  parameters: z.record(
    z.string(),
    z.custom<ParameterValue>((value) => value !== undefined && value !== null),
  ),
  /** The chosen input: items of the catalog, a path, or a size. */
  input: runInput,
  inputs: readInputs,
  /** Null where there was none, as in a test. */
  operationId: printable(1_000).nullable(),
  /** Versions, by the name of the software: `GDAL`, `marketplace-app-kit`. */
  software,
  /** SHA-256 of all the rest as JSON with its keys sorted. */
  digest: sha256,
});
export type Provenance = z.output<typeof provenance>;

/** Provenance known before the step's process has opened anything. */
export type ProvenanceKnown = Omit<Provenance, 'inputs' | 'digest'>;
