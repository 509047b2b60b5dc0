import type gdal from 'gdal-async';
import type * as z from 'zod';

/** The schema language of parameters: the kit's own copy. */
export * as z from 'zod';
import type { SourceType } from '../contract/index.ts';
import { KitError } from '../contract/kit-error.ts';
import type { createRaster, gridOf, nameBands, writeCog } from '../raster/cog.ts';
import type { JobContext } from '../child/in-child.ts';
import type { PreviewStyle } from '../raster/preview.ts';
import type { Features } from '../raster/features.ts';
import type { requireSameGrid, Scene } from '../raster/scene.ts';
import type { SyntheticKind } from '../raster/synthetic-bands.ts';
import type { readerOf } from '../raster/band-reader.ts';
import type { eachStrip, walkBands, walkStrips } from '../raster/block-walk.ts';

/** A band of an output: its name, data type and nodata value. */
export interface BandDeclaration {
  readonly description: string;
  /** GDAL's name: `Byte`, `UInt16`, `Float32`, ... */
  readonly dataType: string;
  readonly nodata?: number | undefined;
}

/** Facts about an input before the app fetches it. */
export interface EstimateInput {
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  readonly bandCount: number;
}

/** An estimate of what a run takes, right within a factor of two. */
export interface StepEstimate {
  readonly outputBytes: number;
  /** Time of processing on two cores. */
  readonly seconds: number;
  /** Resident, at the peak. */
  readonly memoryBytes: number;
}

/** Requirements of a step: its machine must have all of them. Default of each: nothing in particular. */
export interface StepRequirements {
  /** Memory that the step may use. Default: the app's limit (`STEP_MEMORY_BYTES`). */
  readonly memoryBytes?: number;
  readonly cores?: number;
  /** Space for the step's own files. */
  readonly diskBytes?: number;
  /** Kind of machine, such as `gpu`: a word of lower-case letters, digits and hyphens. */
  readonly label?: string;
}

/** True for a word that a step or a worker may have as its label. */
export const isLabel = (word: string): boolean => /^[a-z0-9][a-z0-9-]{0,39}$/.test(word);

interface InputItems {
  /** Beside others, on the form. Default: its name. */
  readonly title?: string;
  /** Describes the input that a user has to bring. */
  readonly description: string;
  /** Source types of the items that fit; the app offers no others, and says so. Default: all that hold rasters, or features. */
  readonly sourceTypes?: readonly SourceType[];
  /** Most items of one run. Default 200, of features 1; 1 for a step that takes one raster. */
  readonly maxItems?: number;
  /** A run can do without. Default false. */
  readonly optional?: boolean;
}

/** Rasters, of one file or several. */
export interface RasterInput extends InputItems {
  readonly kind?: 'raster';
  /** Kind of synthetic input for trial runs. Null for an optional input that a synthetic run leaves out. */
  readonly synthetic: SyntheticKind | null;
}

/** Features: GeoJSON, GeoPackage, FlatGeobuf, CSV. */
export interface VectorInput extends InputItems {
  readonly kind: 'vector';
}

/** An input of a step: rasters or features. */
export type InputDeclaration = RasterInput | VectorInput;

type Inputs = Readonly<Record<string, InputDeclaration>>;
/** An input, as a step gets it. */
export type InputOf<Declaration extends InputDeclaration> =
  | (Declaration extends { readonly kind: 'vector' } ? Features : Scene)
  | (Declaration extends { readonly optional: true } ? undefined : never);

interface OutputFile {
  /** Name of the file that the step writes, and that the platform gets. */
  readonly fileName: string;
  /**
   * Kind of data (spec 2.8). `as-input`: the type of the main input's items, or `UNKNOWN` if they differ. Default: `as-input` for a
   * raster, the word for the geometry of features, and `UNKNOWN` for other files. Declare `UNKNOWN` for computed values, such as an
   * index: none of the words means them, and an index is not a `MULTISPECTRAL` scene.
   */
  readonly sourceType?: SourceType | 'as-input';
  /** The step may leave it out. Default false. */
  readonly optional?: boolean;
}

/** A raster that comes out. The host opens it and holds it against this. */
export interface RasterOutput extends OutputFile {
  readonly kind?: 'raster';
  /**
   * The bands that come out. `as-input`: those of the input's first raster, which may get a nodata value if they have none.
   * `any`: their number and types follow from parameters and input.
   */
  readonly bands: readonly BandDeclaration[] | 'as-input' | 'any';
  /** Style of the picture, or a function that returns the style for the parameters of a run. */
  readonly preview: PreviewStyle | ((parameters: Readonly<Record<string, unknown>>) => PreviewStyle);
}

/** The style of an output's picture, for the parameters of a run. */
export const previewOf = ({ preview }: Pick<RasterOutput, 'preview'>, parameters: Readonly<Record<string, unknown>>) =>
  typeof preview === 'function' ? preview(parameters) : preview;

export const vectorGeometries = [
  'Point',
  'LineString',
  'Polygon',
  'MultiPoint',
  'MultiLineString',
  'MultiPolygon',
  'None',
] as const;
export const fieldTypes = ['string', 'integer', 'real', 'boolean', 'date', 'datetime'] as const;

/** Features or rows that come out, in one layer. The host opens it and holds it against this. */
export interface VectorOutput extends OutputFile {
  readonly kind: 'vector';
  /** Geometry of every feature; `None` for a table. */
  readonly geometry: (typeof vectorGeometries)[number];
  /** The fields, all of them, each with its type. */
  readonly fields: Readonly<Record<string, (typeof fieldTypes)[number]>>;
}

/** The source type of an output, as declared or by default. */
export function sourceTypeOfOutput(declared: OutputDeclaration): SourceType | 'as-input' {
  if (declared.sourceType !== undefined) return declared.sourceType;
  if (declared.kind === 'file') return 'UNKNOWN';
  return declared.kind === 'vector' ? typesOfGeometries[declared.geometry] : 'as-input';
}

const typesOfGeometries = {
  Point: 'POINT',
  MultiPoint: 'POINT',
  LineString: 'LINESTRING',
  MultiLineString: 'LINESTRING',
  Polygon: 'POLYGON',
  MultiPolygon: 'POLYGON',
  None: 'UNKNOWN',
} as const satisfies Record<VectorOutput['geometry'], SourceType>;

/** A file of any other kind. The host holds it against nothing but that it is there and not empty. */
export interface FileOutput extends OutputFile {
  readonly kind: 'file';
}

/** An output of a step: a raster, features, or any file. */
export type OutputDeclaration = RasterOutput | VectorOutput | FileOutput;

/** The declaration of a step, for the host, the forms and the docs. */
export interface StepDeclaration {
  /** `[a-z][a-z0-9-]*`, unique in the registry. */
  readonly id: string;
  /** Semantic version; change it when the output changes. */
  readonly version: string;
  readonly title: string;
  readonly description: string;
  /**
   * A string, a number, a boolean or a choice by name, each with its bounds and `.meta({ title, description })`, or one of `band`,
   * `crs`, `date` and `resampling`; `.optional()` where a step does without. The host
   * refuses unknown names; missing ones take their default or are an error. Forms and documents are made of it.
   */
  readonly parameters: z.ZodObject;
  /** The step's own tests, as data (docs/steps-testing.md): `new URL('./cases.json', import.meta.url)`. Default: none. */
  readonly cases?: URL;
  /** The rasters that it takes; or `inputs`. */
  readonly input?: RasterInput;
  /** Several, or features, by names of the step's own; `scene` is the first that holds rasters. */
  readonly inputs?: Readonly<Record<string, InputDeclaration>>;
  /** Acquisition time of the results: the time of the latest input, of the earliest input, or none. Default `latest`. */
  readonly acquisition?: 'latest' | 'earliest' | 'none';
  /** `writePixels` writes every output, so that the rows of a large run can be computed by several jobs. Default false. */
  readonly isTiled?: boolean;
  /** A run waits until a worker has all of this (docs/scaling.md). Default: any worker will do. */
  readonly requires?: StepRequirements;
  /** The bands that its parameters and `needs` name must lie on the same pixels: the app looks before it asks for approval. Default false. */
  readonly sameGrid?: boolean;
  /** The one raster that comes out; or `outputs`. */
  readonly output?: RasterOutput | undefined;
  /** Several, or of another kind, by names of the step's own; the first is the one that people look at. */
  readonly outputs?: Readonly<Record<string, OutputDeclaration>>;
}

/** The work of one job on a run that is cut into tiles of whole rows. */
export type TileWork =
  | {
      readonly type: 'part';
      /** First row. */
      readonly from: number;
      /** Row after the last one. Null: to the end. */
      readonly to: number | null;
    }
  | {
      readonly type: 'whole';
      /** The tiles in the order of their rows. `paths`: the file of each output, by its file name. */
      readonly parts: readonly { readonly from: number; readonly paths: Readonly<Record<string, string>> }[];
    };

/** Arguments of a step's `run`. The host calls it in a separate child process. */
export interface StepJob<
  Parameters,
  Outputs extends string = string,
  Takes extends Inputs = Inputs,
> extends JobContext {
  /** Checked against the declaration, defaults filled in. */
  readonly parameters: Parameters;
  /** The input's rasters, opened read-only through the driver allowlist; of several inputs, the first with rasters. */
  readonly scene: Scene;
  /** Each input, by its name. */
  readonly inputs: { readonly [Name in keyof Takes]: InputOf<Takes[Name]> };
  /** Write the output here; where there are several, the first. */
  readonly outputPath: string;
  /** Path of each output, by its name. */
  readonly outputs: Readonly<Record<Outputs, string>>;
  /** For temporary files; removed after the run. */
  readonly workFolder: string;
  /** Rows that this job computes, or parts that other jobs have computed. `writePixels` follows it. Default: this job computes all rows. */
  readonly tile?: TileWork | undefined;
  /**
   * Provenance for the output's own metadata. `writeCog` writes it, and the host adds it to GeoTIFF, GeoPackage and GeoJSON.
   * Use it for a COG that you write in another way.
   */
  readonly metadata: Readonly<Record<string, string>>;
  /** GDAL itself, as a `work` module imports it. To open further files, don't: paths in an input must not decide what is read. */
  readonly gdal: typeof gdal;
  readonly raster: {
    readonly createRaster: typeof createRaster;
    readonly gridOf: typeof gridOf;
    readonly nameBands: typeof nameBands;
    /** Opens a raster that another program has written, through the driver allowlist of inputs. */
    readonly openRaster: (path: string) => gdal.Dataset;
    readonly writeCog: typeof writeCog;
    /** Makes a reader of physical values. Default: scale, offset and nodata of the file, or else of its item. */
    readonly reader: typeof readerOf;
    readonly eachStrip: typeof eachStrip;
    readonly walkBands: typeof walkBands;
    readonly walkStrips: typeof walkStrips;
    readonly requireSameGrid: typeof requireSameGrid;
  };
  /** Functions that `command` with an `image` needs. */
  readonly container: {
    /** Path of an input file in a container. */
    readonly pathOf: (path: string) => string;
    /** Runs a program in the declared image, with `files` (texts by name) in its work folder. */
    readonly run: (
      argv: readonly string[],
      files: Readonly<Record<string, string>>,
      /** Share of the step's progress bar at which the program ends. */
      upTo: number,
    ) => Promise<{ readonly exitCode: number | null; readonly errors: string; readonly folder: string }>;
  };
  /** Part of the whole: `share(0.2, 1)` counts from 20 % to the end. */
  readonly share: (from: number, to: number) => JobContext;
}

interface StepFunctions<Parameters extends z.ZodObject> {
  readonly parameters: Parameters;
  /** Bands that the step takes beside those of its `band` parameters, by the parameter that they follow from: checked like those. Default: none. */
  needs?(parameters: z.output<Parameters>): Readonly<Record<string, readonly string[]>>;
  /** From metadata alone (of the first input with rasters), shown to the user and told in the operation before anybody approves. Default: no estimate. */
  estimate?(input: EstimateInput, parameters: z.output<Parameters>): StepEstimate;
}

/** Either the function `run`, or `work`, which imports a module with that function. */
type StepWork<Job> =
  | { run(job: Job): Promise<void>; readonly work?: never }
  | {
      /**
       * The module whose default export does the work: `() => import('./work.ts')`. Only the confined child loads it, so it may
       * import GDAL and `marketplace-app-kit/raster`. A server reads the declaration without them.
       */
      readonly work: () => Promise<{ readonly default: (job: Job) => Promise<void> }>;
      readonly run?: never;
    };

/** Takes an `input`, or `inputs` by name; leaves one raster as its `output`, or `outputs` by name. */
export type Step<
  Parameters extends z.ZodObject,
  Outputs extends string = 'output',
  Takes extends Inputs = Inputs,
> = Omit<StepDeclaration, 'inputs' | 'output' | 'outputs'> &
  StepFunctions<Parameters> &
  StepWork<StepJob<z.output<Parameters>, Outputs, Takes>> & {
    readonly inputs?: Takes;
    readonly output?: RasterOutput | undefined;
    readonly outputs?: Readonly<Record<Outputs, OutputDeclaration>>;
  };

/** A step whose parameters' type its holder does not know; the host has checked them before `run`. */
export interface AnyStep extends StepDeclaration {
  needs?(parameters: never): Readonly<Record<string, readonly string[]>>;
  estimate?(input: EstimateInput, parameters: never): StepEstimate;
  run(job: StepJob<never, string, never>): Promise<void>;
}

/**
 * A step is a declaration and its work: one function, or a module with one. The types of its parameters, inputs and outputs follow from the declaration.
 * Throws `KitError` (`bad_step_definition`) for a step with neither or both.
 */
export function defineStep<
  Parameters extends z.ZodObject,
  Outputs extends string = 'output',
  const Takes extends Inputs = Inputs,
>(step: Step<Parameters, Outputs, Takes>): AnyStep {
  const isInModule = step.work !== undefined;
  if (isInModule === (step.run !== undefined))
    throw new KitError(
      'bad_step_definition',
      `step ${step.id} has ${isInModule ? 'both run and work' : 'neither run nor work'}. Declare exactly one of them.`,
    );
  return isInModule ? { ...step, run: async (job) => (await step.work()).default(job) } : step;
}

/** A step's inputs by name. */
export function inputsOf({ input, inputs }: Pick<StepDeclaration, 'input' | 'inputs'>): [string, InputDeclaration][] {
  return Object.entries(inputs ?? (input ? { input } : {}));
}

/** The input whose bands and size count where nobody says which: the first with rasters. */
export function mainInput(step: Pick<StepDeclaration, 'input' | 'inputs'>): [string, RasterInput] | null {
  for (const [name, declared] of inputsOf(step)) if (declared.kind !== 'vector') return [name, declared];
  return null;
}

/** A step's outputs by name, the one that people look at first. */
export function outputsOf({
  output,
  outputs,
}: Pick<StepDeclaration, 'output' | 'outputs'>): [string, OutputDeclaration][] {
  return Object.entries(outputs ?? (output ? { output } : {}));
}
