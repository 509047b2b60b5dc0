import {
  type AnyStep,
  type BandReader,
  defineStep,
  estimateCog,
  KitError,
  readingOf,
  readingParameters,
  type SceneBand,
  z,
} from '../step-kit.ts';
import { computeExpression, nodata } from '../band-math/compute.ts';
import { parseExpression } from '../band-math/expression.ts';
import { spectralIndices, type IndexCatalogue, type SpectralIndex } from './catalogue.ts';
import { needsReflectance } from './needs-reflectance.ts';
import { readIndexCatalogue } from './read-catalogue.ts';

/** Adds the parameters and the words of a catalogue to the step. */
function stepOf({ indices, constants }: IndexCatalogue, description: string): AnyStep {
  const ids = Object.keys(indices);
  const placeholders = Object.fromEntries(Object.keys(constants).map((name) => [name, 1]));
  const bandsOf = (index: string) => parseExpression(indices[index]!.formula, placeholders).bands;
  const constantsOf = (index: string) =>
    Object.keys(constants).filter((name) => new RegExp(`(?<!\\w)${name}(?!\\w)`).test(indices[index]!.formula));
  const choices = Object.fromEntries(
    ids.map((id) => {
      const { name, reference } = indices[id]!;
      const names = constantsOf(id);
      const title = `${name} (${reference})${names.length > 0 ? `; constants ${names.join(', ')}` : ''}`;
      return [id, { title, bands: bandsOf(id) }];
    }),
  );
  const constantParameters: Readonly<Record<string, z.ZodOptional<z.ZodNumber>>> = Object.fromEntries(
    Object.entries(constants).map(([name, constant]) => [
      name,
      z
        .number()
        .min(-1e9)
        .max(1e9)
        .optional()
        .meta({
          title: name,
          description: `${constant.description}. ${constant.default === null ? 'An index with this constant needs it.' : `Default: ${constant.default}.`}`,
          group: 'Constants',
        }),
    ]),
  );
  return defineStep({
    id: 'spectral-index',
    version: '2.2.0',
    cases: new URL('./cases.json', import.meta.url),
    title: 'Spectral index',
    description,
    parameters: z.object({
      index: z
        .enum(ids)
        .default('NDVI' in indices ? 'NDVI' : ids[0]!)
        .meta({ title: 'Index', description: 'The index to compute.', choices }),
      factor: z.number().min(-1e6).max(1e6).optional().meta({
        title: 'Factor',
        description:
          'Converts stored numbers to reflectance, instead of the scale of the file or its item: 0.0000275 for Landsat Collection 2, 0.0001 for Sentinel-2.',
      }),
      offset: z.number().min(-1e6).max(1e6).optional().meta({
        title: 'Offset',
        description: 'The number to add then: -0.2 for Landsat Collection 2, -0.1 for Sentinel-2 since January 2022.',
      }),
      ...readingParameters,
      ...constantParameters,
    }),
    input: {
      description: 'A multispectral scene whose bands have common names (red, nir, swir16).',
      sourceTypes: ['MULTISPECTRAL', 'HYPERSPECTRAL', 'UNKNOWN'],
      synthetic: 'multispectral',
    },
    sameGrid: true,
    isTiled: true,
    output: {
      fileName: 'index.tif',
      sourceType: 'UNKNOWN',
      bands: [{ description: 'index', dataType: 'Float32', nodata }],
      preview: ({ index }) => {
        const { ramp = 'rdylgn', range } = indices[String(index)]!;
        return { ramp, ...(range && { range }) };
      },
    },
    // Also tells a constant that is missing before the user is asked.
    needs: ({ index, scaling: _scaling, ...given }) => {
      valuesOf(index, constantsOf(index), constants, given);
      return { index: bandsOf(index) };
    },
    estimate: (input) => estimateCog(input, { bytesPerPixel: 4.2, secondsPerMegapixel: 0.12 }),

    run: (job) => {
      const { index, factor, offset, scaling, nodata: missing, ...given } = job.parameters;
      const reading = readingOf({ scaling, nodata: missing });
      const isGiven = factor !== undefined || offset !== undefined;
      const values = valuesOf(index, constantsOf(index), constants, given);
      const bands = bandsOf(index).map((name) => ({ name, band: job.scene.findBand(name) }));
      const readers = bands.map(({ band }) => job.raster.reader(band, reading));
      requireBothOrNone({ factor, offset }, readers);
      if (!isGiven && needsReflectance(indices[index]!.formula, values))
        bands.forEach(({ name, band }, i) => requireReflectance(index, name, band, readers[i]!));
      return computeExpression(job, {
        expression: indices[index]!.formula,
        constants: values,
        output: { description: 'index', dataType: 'Float32', nodata },
        reading: isGiven ? { ...reading, scaling: { factor: factor ?? 1, offset: offset ?? 0 } } : reading,
      });
    },
  });
}

/** Throws `KitError` if only one of factor and offset is given, and the bands have a scale whose other part it would replace. */
function requireBothOrNone(
  { factor, offset }: { readonly factor: number | undefined; readonly offset: number | undefined },
  readers: readonly BandReader[],
): void {
  const scales = readers
    .filter(({ scaleOrigin }) => scaleOrigin === 'file' || scaleOrigin === 'item')
    .map(({ scale }) => scale);
  if (factor === undefined && offset !== undefined && scales.length > 0)
    throw new KitError(
      'factor_missing',
      'the bands have a scale of their own, which offset replaces; give factor with it, for example factor 0.0001 and offset -0.1',
      { status: 422 },
    );
  const replaced = scales.find((scale) => scale.offset !== 0)?.offset;
  if (factor !== undefined && offset === undefined && replaced !== undefined)
    throw new KitError(
      'factor_missing',
      `the bands have an offset of their own (${replaced}), which factor replaces; give offset with it, for example ${replaced}, or 0 for none`,
      { status: 422 },
    );
}

/** Throws `KitError` (`reflectance_needed`) if a band has whole numbers without a scale: digital numbers give another index. */
function requireReflectance(index: string, name: string, { band }: SceneBand, { scaleOrigin }: BandReader): void {
  if (scaleOrigin !== 'none' || band.dataType?.startsWith('Float')) return;
  throw new KitError(
    'reflectance_needed',
    `${index} needs reflectance from 0 to 1, and the band ${name} has whole numbers without a scale: give factor, for example 0.0001 for Sentinel-2 (with offset -0.1 since January 2022), or 1 if they are reflectance`,
    { status: 422 },
  );
}

type Given = Readonly<Record<string, number | undefined>>;

/** The constants of an index. Throws `KitError` for a constant that has no default and is not given. */
function valuesOf(
  index: string,
  names: readonly string[],
  constants: IndexCatalogue['constants'],
  given: Given,
): Readonly<Record<string, number>> {
  return Object.fromEntries(
    names.map((name) => {
      const value = given[name] ?? constants[name]!.default;
      if (value === null)
        throw new KitError(
          'constant_missing',
          `${index} needs the constant ${name} (${constants[name]!.description})`,
          {
            status: 422,
          },
        );
      return [name, value];
    }),
  );
}

/** Returns the kit's ramp and range for an index. Both are absent if the kit has no such index. */
function styleOf(id: string): Pick<SpectralIndex, 'ramp' | 'range'> {
  const known: SpectralIndex | undefined = new Map(Object.entries(spectralIndices)).get(id);
  return { ...(known?.ramp && { ramp: known.ramp }), ...(known?.range && { range: known.range }) };
}

const own = stepOf(
  { indices: spectralIndices, constants: {} },
  `A spectral index by its name: ${Object.entries(spectralIndices)
    .map(([id, { name }]) => `${id} (${name.toLowerCase()})`)
    .join(', ')}.`,
);
/** A spectral index of the kit's own catalogue, by its name. */
export default own;

/**
 * The step `spectral-index` with the indices of a folder: `spectral-indices-dict.json`, `constants.json` and `bands.json` of Awesome Spectral Indices.
 * Without the three files it has the kit's own. Constants are parameters. Leaves out formulas that the expression language cannot express.
 * Throws `KitError` if a file is missing beside the others, or cannot be used.
 */
export function spectralIndexFrom(folder: URL): AnyStep {
  const read = readIndexCatalogue(folder);
  if (!read) return own;
  const count = Object.keys(read.indices).length;
  const without = read.leftOut === 0 ? '' : ` ${read.leftOut} others need more than arithmetic and are left out.`;
  return stepOf(
    // The kit's ranges and ramps hold for indices of the same name.
    {
      ...read,
      indices: Object.fromEntries(
        Object.entries(read.indices).map(([id, entry]) => [id, { ...styleOf(id), ...entry }]),
      ),
    },
    `One of ${count} spectral indices of the catalogue Awesome Spectral Indices, by its short name.${without}`,
  );
}
