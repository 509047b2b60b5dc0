import type gdal from 'gdal-async';
import type { SourceType } from '../contract/index.ts';
import type { createRaster, gridOf, writeCog } from '../raster/cog.ts';
import type { JobContext } from '../raster/child/protocol.ts';
import type { PreviewStyle } from '../raster/preview.ts';
import type { requireSameGrid, Scene } from '../raster/scene.ts';
import type { SyntheticKind } from '../raster/synthetic-scene.ts';
import type { walkStrips } from '../raster/block-walk.ts';

/** One parameter as JSON Schema (draft-07). Give bounds: the host enforces what stands here and nothing else. */
export interface ParameterSchema {
  readonly type: 'string' | 'number' | 'integer' | 'boolean';
  readonly title: string;
  readonly description: string;
  readonly default?: string | number | boolean;
  readonly enum?: readonly (string | number)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

export interface BandDeclaration {
  readonly description: string;
  /** GDAL's name: `Byte`, `UInt16`, `Float32`, ... */
  readonly dataType: string;
  readonly nodata?: number;
}

/** What a step is, for the host, the forms and the docs. */
export interface StepDeclaration {
  /** `[a-z][a-z0-9-]*`, unique in the registry. */
  readonly id: string;
  /** Semantic version; change it when the output changes. */
  readonly version: string;
  readonly title: string;
  readonly description: string;
  /** By name. Unknown names are refused, missing ones take their default or are an error. */
  readonly parameters: Readonly<Record<string, ParameterSchema>>;
  readonly input: {
    /** What a user has to bring, in words. */
    readonly description: string;
    /** Source types of the items that fit; the app offers no others, and says so. Default: all that hold rasters. */
    readonly sourceTypes?: readonly SourceType[];
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

export interface Step<Parameters> extends StepDeclaration {
  run(job: StepJob<Parameters>): Promise<void>;
}

/** A step whose parameters' type the registry does not know; the host has checked them before `run`. */
export type AnyStep = Step<never>;

/** A step is a declaration and one function. `Parameters` is the type of what the declaration's parameters let through. */
export function defineStep<Parameters>(step: Step<Parameters>): AnyStep {
  return step;
}
