import { readdir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import * as z from 'zod';
import { isPathSegment, KitError } from '../../contract/index.ts';
import { resolveFileInside, resolveInside } from '../../files/index.ts';
import { rasterExtensions, vectorExtensions } from '../../raster/index.ts';
import { inputsOf, type AnyStep, type InputDeclaration } from '../../steps/step.ts';

/** One path segment. A dot or two dots would lead to another address. */
const identifier = z.string().min(1).max(512).refine(isPathSegment, 'must be an identifier');

/** An item of the platform's catalog. */
const itemReference = z.strictObject({ collectionId: identifier, itemId: identifier });
export type ItemReference = z.output<typeof itemReference>;

/**
 * Sources of a run's input: items of the platform, a raster made by code, or one file or folder of single-band files
 * under `INPUT_DIR`. Rasters of several items are processed together.
 */
const sources = [
  z.strictObject({
    type: z.literal('platform'),
    items: z
      .array(itemReference)
      .min(1, 'must name at least one item')
      .max(200, 'must name at most 200 items')
      .refine(
        (items) => new Set(items.map(({ collectionId, itemId }) => `${collectionId}/${itemId}`)).size === items.length,
        'must name each item once',
      ),
  }),
  z.strictObject({ type: z.literal('synthetic'), size: z.int().min(64).max(8192).default(1024) }),
  z.strictObject({ type: z.literal('local'), path: z.string().min(1).max(1024) }),
] as const;
const inputSource = z.discriminatedUnion('type', sources);
export type InputSource = z.output<typeof inputSource>;

/** Inputs of a step that has several, each by its name. */
const namedInputs = z.strictObject({
  type: z.literal('named'),
  inputs: z.record(z.string().max(40), inputSource).refine((inputs) => Object.keys(inputs).length <= 20),
});
export const runInput = z.discriminatedUnion('type', [...sources, namedInputs]);
export type RunInput = z.output<typeof runInput>;

/** One of a step's inputs, and what a run takes for it. */
export interface ChosenInput {
  readonly name: string;
  readonly declared: InputDeclaration;
  readonly source: InputSource;
}

/** A run's input as the step's declaration has it; a synthetic one stands for all of them. Throws `InputError` for one that is missing, and one that the step does not have. */
export function chosenInputs(step: AnyStep, input: RunInput): ChosenInput[] {
  const inputs = inputsOf(step);
  // A single input without a name is the step's one required input.
  const [[onlyName = ''] = [], another] = inputs.filter(([, { optional }]) => optional !== true);
  const names = inputs.map(([name]) => name);
  if (input.type !== 'named' && input.type !== 'synthetic' && another)
    throw new InputError(`${step.title} takes several inputs: name each (${names.join(', ')})`);
  const given: Readonly<Record<string, InputSource>> =
    input.type === 'named'
      ? input.inputs
      : input.type === 'synthetic'
        ? Object.fromEntries(
            inputs.flatMap(([name, declared]) =>
              'synthetic' in declared && declared.synthetic === null ? [] : [[name, input]],
            ),
          )
        : { [onlyName]: input };
  const [unknown] = Object.keys(given).filter((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new InputError(`${step.title} has no input ${JSON.stringify(unknown)}; its inputs are ${names.join(', ')}`);
  return inputs.flatMap(([name, declared]): ChosenInput[] => {
    const source = Object.hasOwn(given, name) ? given[name] : undefined;
    if (source) return [{ name, declared, source }];
    if (declared.optional) return [];
    throw new InputError(`${step.title} needs the input ${name}: ${declared.description}`);
  });
}

export class InputError extends KitError {
  constructor(message: string) {
    super('invalid_input', message, { status: 400 });
  }
}

const maxFiles = 200;

export type InputKind = 'raster' | 'vector';
export const kindOf = ({ kind = 'raster' }: Pick<InputDeclaration, 'kind'>): InputKind => kind;
/** Endings of the files that hold such an input. */
export const extensionsOf: Readonly<Record<InputKind, ReadonlySet<string>>> = {
  raster: rasterExtensions,
  vector: vectorExtensions,
};

/** The files of a local input, as absolute paths inside `inputDir`. Throws `UnsafePathError` or `InputError`. */
export async function findFiles(inputDir: string, path: string, kind: InputKind): Promise<string[]> {
  const extensions = extensionsOf[kind];
  const real = await resolveInside(inputDir, path);
  if ((await stat(real)).isFile()) return [await resolveFileInside(inputDir, path)];
  const names = (await readdir(real)).filter((name) => extensions.has(extname(name).toLowerCase())).sort();
  if (names.length === 0)
    throw new InputError(
      `${JSON.stringify(path)} holds no ${kind === 'raster' ? 'raster' : 'features'}; looked for ${[...extensions].join(' ')}`,
    );
  if (names.length > maxFiles)
    throw new InputError(`${JSON.stringify(path)} holds ${names.length} files; the app reads at most ${maxFiles}`);
  return Promise.all(names.map((name) => resolveFileInside(inputDir, join(path, name))));
}

/** Lists the possible local inputs: the files and folders directly under `inputDir`. */
export async function listInputs(inputDir: string, kind: InputKind): Promise<string[]> {
  const entries = await readdir(inputDir, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() || extensionsOf[kind].has(extname(entry.name).toLowerCase()))
    .map((entry) => entry.name)
    .sort();
}
