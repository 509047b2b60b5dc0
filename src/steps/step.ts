import type gdal from 'gdal-async';
import type * as z from 'zod';

/** The schema language of parameters: the kit's own copy. */
export * as z from 'zod';
import type { SourceType } from '../contract/index.ts';
import type { createRaster, gridOf, writeCog } from '../raster/cog.ts';
import type { JobContext } from '../raster/child/protocol.ts';
import type { PreviewStyle } from '../raster/preview.ts';
import type { requireSameGrid, Scene } from '../raster/scene.ts';
import type { SyntheticKind } from '../raster/synthetic-bands.ts';
import type { walkStrips } from '../raster/block-walk.ts';

export interface BandDeclaration {
  readonly description: string;
  /** GDAL's name: `Byte`, `UInt16`, `Float32`, ... */
  readonly dataType: string;
  readonly nodata?: number;
}

/** What is known of an input before anybody fetches it. */
export interface EstimateInput {
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  readonly bandCount: number;
}

/** What a run will about take: right within a factor of two. */
export interface StepEstimate {
  readonly outputBytes: number;
  /** Of processing, on two cores. */
  readonly seconds: number;
  /** Resident, at the peak. */
  readonly memoryBytes: number;
}

/** What a step is, for the host, the forms and the docs. */
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
  readonly input: {
    /** What a user has to bring, in words. */
    readonly description: string;
    /** Source types of the items that fit; the app offers no others, and says so. Default: all that hold rasters. */
    readonly sourceTypes?: readonly SourceType[];
    /** Most items of one run. Default 200; 1 for a step that takes one raster. */
    readonly mostItems?: number;
    /** The synthetic input that suits the step. */
    readonly synthetic: SyntheticKind;
  };
  readonly output: {
    readonly fileName: string;
    readonly sourceType: SourceType;
    /** The bands that come out; `as-input` where they are those of the one input raster. The host checks. */
    readonly bands: readonly BandDeclaration[] | 'as-input';
    readonly preview: PreviewStyle;
  };
}

/** What the host hands to a step's `run`, in a child process of its own. */
export interface StepJob<Parameters> extends JobContext {
  /** Checked against the declaration, defaults filled in. */
  readonly parameters: Parameters;
  /** The input's rasters, opened read-only through the driver allowlist. */
  readonly scene: Scene;
  /** Write the one output file here. */
  readonly outputPath: string;
  /** For temporary files; removed after the run. */
  readonly workFolder: string;
  /** GDAL itself. To open further files, don't: paths in an input must not decide what is read. */
  readonly gdal: typeof gdal;
  readonly raster: {
    readonly createRaster: typeof createRaster;
    readonly gridOf: typeof gridOf;
    readonly writeCog: typeof writeCog;
    readonly walkStrips: typeof walkStrips;
    readonly requireSameGrid: typeof requireSameGrid;
  };
  /** Part of the whole: `share(0.2, 1)` counts from 20 % to the end. */
  readonly share: (from: number, to: number) => JobContext;
}

export interface Step<Parameters extends z.ZodObject> extends StepDeclaration {
  readonly parameters: Parameters;
  /** Bands that the step takes beside those of its `band` parameters, by the parameter that they follow from: checked like those. Default: none. */
  needs?(parameters: z.output<Parameters>): Readonly<Record<string, readonly string[]>>;
  /** From metadata alone, shown to the user and told in the operation before anybody approves. Default: no estimate. */
  estimate?(input: EstimateInput, parameters: z.output<Parameters>): StepEstimate;
  run(job: StepJob<z.output<Parameters>>): Promise<void>;
}

/** A step whose parameters' type its holder does not know; the host has checked them before `run`. */
export interface AnyStep extends StepDeclaration {
  needs?(parameters: never): Readonly<Record<string, readonly string[]>>;
  estimate?(input: EstimateInput, parameters: never): StepEstimate;
  run(job: StepJob<never>): Promise<void>;
}

/** A step is a declaration and one function; the type of its parameters follows from their schema. */
export function defineStep<Parameters extends z.ZodObject>(step: Step<Parameters>): AnyStep {
  return step;
}
