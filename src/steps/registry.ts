import cog from './cog/index.ts';
import hillshade from './hillshade/index.ts';
import ndvi from './ndvi/index.ts';
import type { AnyStep } from './step.ts';

/** The steps that the app offers. A new one is a folder beside these and a line here. */
export const steps: readonly AnyStep[] = [ndvi, cog, hillshade];
