import * as z from 'zod';
import { KitError } from '../contract/index.ts';

/** Settings that app and sandbox share, as they stand in the environment. */
export const serverVariables = {
  HOST: z.string().default('127.0.0.1'),
  TLS_CERT: z.string().optional(),
  TLS_KEY: z.string().optional(),
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

/** Files of a certificate and its private key, in PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** `TLS_CERT` and `TLS_KEY`; null without them. Throws `KitError` if one of them is missing. */
export function tlsSettings({
  TLS_CERT,
  TLS_KEY,
}: {
  TLS_CERT?: string | undefined;
  TLS_KEY?: string | undefined;
}): TlsFiles | null {
  if (TLS_CERT === undefined && TLS_KEY === undefined) return null;
  if (TLS_CERT !== undefined && TLS_KEY !== undefined) return { certFile: TLS_CERT, keyFile: TLS_KEY };
  throw new KitError(
    'bad_configuration',
    'TLS_CERT and TLS_KEY go together: the files of a certificate and of its private key, in PEM',
  );
}

/**
 * Value of a refused setting for an error, without the password of an address. It is quoted where it has anything that a
 * terminal would not show, such as a line end.
 */
export function shownSetting(value: string): string {
  const shown = value.replace(/(\/\/[^/?#\s]*?:)[^/?#\s]*@/g, '$1[redacted]@').slice(0, maxShown);
  return /^[\x21-\x7e]*$/.test(shown) ? shown : JSON.stringify(shown);
}

const maxShown = 300;
