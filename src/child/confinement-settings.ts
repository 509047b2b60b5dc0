import { delimiter, isAbsolute } from 'node:path';
import * as z from 'zod';
import { confinementModes, type ConfinementMode } from './establish-confinement.ts';

export interface ConfinementSettings {
  /** `STEP_CONFINEMENT`: `required`, `auto` or `none`. Default: required where the process is deployed (`DATABASE_URL` or `NODE_ENV=production` is set), else auto. */
  readonly mode: ConfinementMode;
  /** `CONFINEMENT_READS`, default none: further folders that child processes may read, separated as in `PATH`. */
  readonly readable: readonly string[];
}

/** Part of a server's settings, for its schema of the environment. */
export const confinementVariables = {
  STEP_CONFINEMENT: z.enum(confinementModes, `must be one of ${confinementModes.join(', ')}`).optional(),
  CONFINEMENT_READS: z
    .string()
    .transform((value) => value.split(delimiter).filter((path) => path !== ''))
    .refine((paths) => paths.every(isAbsolute), `must be absolute paths, separated by ${delimiter}`)
    .default([]),
};

/** `read` is what the schema made of the environment. */
export function confinementSettings(
  env: NodeJS.ProcessEnv,
  read: { STEP_CONFINEMENT?: ConfinementMode | undefined; CONFINEMENT_READS: readonly string[] },
): ConfinementSettings {
  const isDeployed = Boolean(env['DATABASE_URL'] || env['DATABASE_URL_FILE']) || env['NODE_ENV'] === 'production';
  return { mode: read.STEP_CONFINEMENT ?? (isDeployed ? 'required' : 'auto'), readable: read.CONFINEMENT_READS };
}
