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

/**
 * Value of a refused setting for an error, without the password of an address. It is quoted where it has anything that a
 * terminal would not show, such as a line end.
 */
export function shownSetting(value: string): string {
  const shown = value.replace(/(\/\/[^/?#\s]*?:)[^/?#\s]*@/g, '$1[redacted]@').slice(0, maxShown);
  return /^[\x21-\x7e]*$/.test(shown) ? shown : JSON.stringify(shown);
}

const maxShown = 300;
