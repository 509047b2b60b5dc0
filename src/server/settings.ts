import * as z from 'zod';

/** Settings that app and sandbox share, as they stand in the environment. */
export const serverVariables = {
  HOST: z.string().default('127.0.0.1'),
  MAP_TILES: z
    .string()
    .refine(
      (value) => /^https?:\/\//.test(value) && ['{z}', '{x}', '{y}'].every((part) => value.includes(part)),
      'must be an http or https address with {z}, {x} and {y}',
    )
    .optional(),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'must be a pino level')
    .default('info'),
};
