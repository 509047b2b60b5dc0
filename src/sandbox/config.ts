import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod';
import { isLoopbackName, KitError, permissions, type Permission } from '../contract/index.ts';
import { serverVariables, shownSetting, tlsSettings, type TlsFiles } from '../server/index.ts';
import { confinementSettings, confinementVariables, type ConfinementSettings } from '../child/index.ts';
import { codeOf } from '../files/index.ts';

export class SandboxConfigError extends KitError {
  constructor(message: string) {
    super('bad_configuration', message);
  }
}

/** Settings of a sandbox, read from the environment by `readSandboxConfig`. Times are in milliseconds, sizes in bytes. */
export interface SandboxConfig {
  /** `HOST`, default 127.0.0.1. */
  readonly host: string;
  /** `--port`, default 4010; 0 for any free one. */
  readonly port: number;
  /** `--data`, default `data/sandbox`. */
  readonly dataDir: string;
  /** `TLS_CERT` and `TLS_KEY`, default none: files of a certificate and its key, to speak HTTPS. */
  readonly tls: TlsFiles | null;
  /** `PUBLIC_URL`: what signed addresses are built on. Default: the sandbox's own address. */
  readonly publicUrl: string | null;
  /** `SANDBOX_API_KEY` or `SANDBOX_API_KEY_FILE`: the key of the apps. */
  readonly apiKey: string | null;
  /** `SANDBOX_API_KEY_PERMISSIONS`, separated by commas: the permissions of that key. Default: all of them. */
  readonly apiKeyPermissions: readonly Permission[];
  /** `SANDBOX_ADMIN_KEY` or `SANDBOX_ADMIN_KEY_FILE`, 32 characters at least: required on the control calls where set; else they answer on loopback only. */
  readonly adminKey: string | null;
  /** `SANDBOX_STAC_STRICT`, default true: searches need what the spec requires, and objects carry just the spec's links. `false` is for standard STAC clients. */
  readonly stacStrict: boolean;
  /** `--seed` or `SANDBOX_SEED`: `demo` fills an empty catalog. Default demo. */
  readonly seed: Seed;
  /** `SANDBOX_CLOCK`: time at which the clock of an empty data folder, or of one that was reset, begins, in epoch milliseconds. Default: the machine's time. */
  readonly clockStartsAtMs: number | null;
  /** `MAP_TILES`, default none: address of map tiles with `{z}`, `{x}` and `{y}`, drawn over the coarse land that is always there. */
  readonly mapTiles: string | null;
  /** `STEP_CONFINEMENT` and `CONFINEMENT_READS`: how child processes, which open foreign files, are kept from everything else. */
  readonly confinement: ConfinementSettings;
  /** `LOG_LEVEL`, default info. */
  readonly logLevel: string;
}

export const seeds = ['demo', 'none'] as const;
/** The content of a new sandbox. */
export type Seed = (typeof seeds)[number];

const environment = z.object({
  ...serverVariables,
  PUBLIC_URL: z
    .string()
    .refine(
      (value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
      'must be an http or https address',
    )
    .transform((value) => value.replace(/\/+$/, ''))
    .optional(),
  SANDBOX_API_KEY_PERMISSIONS: z.string().optional(),
  SANDBOX_SEED: z.string().optional(),
  SANDBOX_CLOCK: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with an offset, such as 2026-01-01T00:00:00Z' })
    .optional(),
  SANDBOX_STAC_STRICT: z.enum(['true', 'false'], 'must be true or false').default('true'),
  ...confinementVariables,
});

/** Reads the sandbox's settings once. Throws `SandboxConfigError`. */
export function readSandboxConfig(
  env: NodeJS.ProcessEnv,
  options: { port?: string; data?: string; seed?: string },
): SandboxConfig {
  const read = environment.safeParse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')));
  if (!read.success) {
    throw new SandboxConfigError(
      read.error.issues
        .map((issue) => {
          const name = String(issue.path[0]);
          return `${name}=${shownSetting(env[name] ?? '')} ${issue.message}`;
        })
        .join('\n'),
    );
  }
  const publicUrl = read.data.PUBLIC_URL ?? null;
  const adminKey = readSecret(env, 'SANDBOX_ADMIN_KEY');
  if (adminKey !== null && adminKey.length < minAdminKeyLength)
    throw new SandboxConfigError(
      `SANDBOX_ADMIN_KEY must be at least ${minAdminKeyLength} characters; make one with: openssl rand -base64 32`,
    );
  if (adminKey !== null && adminKey === readSecret(env, 'SANDBOX_API_KEY'))
    throw new SandboxConfigError(
      'SANDBOX_ADMIN_KEY must differ from SANDBOX_API_KEY: an app that has the API key could approve its own operations',
    );
  if (adminKey === null && publicUrl !== null && !isLoopbackName(new URL(publicUrl).hostname)) {
    throw new SandboxConfigError(
      `others can reach PUBLIC_URL=${publicUrl}, and without SANDBOX_ADMIN_KEY they could approve operations: set SANDBOX_ADMIN_KEY (${minAdminKeyLength} characters at least), or leave PUBLIC_URL out`,
    );
  }
  return Object.freeze({
    host: read.data.HOST,
    port: readPort(options.port ?? '4010'),
    dataDir: resolve(options.data ?? 'data/sandbox'),
    publicUrl,
    tls: tlsSettings(read.data),
    apiKey: readSecret(env, 'SANDBOX_API_KEY'),
    apiKeyPermissions:
      readPermissions('SANDBOX_API_KEY_PERMISSIONS', read.data.SANDBOX_API_KEY_PERMISSIONS) ?? permissions,
    adminKey,
    stacStrict: read.data.SANDBOX_STAC_STRICT === 'true',
    seed:
      options.seed !== undefined
        ? readSeed('--seed ', options.seed)
        : readSeed('SANDBOX_SEED=', read.data.SANDBOX_SEED ?? 'demo'),
    clockStartsAtMs: read.data.SANDBOX_CLOCK === undefined ? null : Date.parse(read.data.SANDBOX_CLOCK),
    mapTiles: read.data.MAP_TILES ?? null,
    confinement: confinementSettings(env, read.data),
    logLevel: read.data.LOG_LEVEL,
  });
}

const minAdminKeyLength = 32;

/** A list with commas; null if it is not set. Throws `SandboxConfigError` for another word. */
export function readPermissions(name: string, text: string | undefined): Permission[] | null {
  if (text === undefined) return null;
  return text.split(',').map((word) => {
    const permission = permissions.find((known) => known === word.trim());
    if (permission) return permission;
    throw new SandboxConfigError(`${name}=${text} must be one or more of ${permissions.join(', ')}, with commas`);
  });
}

function readSeed(setting: string, value: string): Seed {
  const seed = seeds.find((known) => known === value);
  if (!seed) throw new SandboxConfigError(`${setting}${value} must be one of ${seeds.join(', ')}`);
  return seed;
}

export function readPort(value: string): number {
  const port = Number(value);
  if (!/^\d{1,5}$/.test(value) || port > 65_535)
    throw new SandboxConfigError(`--port ${value} must be an integer from 0 to 65535`);
  return port;
}

/** A setting, or what its `_FILE` holds; null where neither is set. A key goes into a header: printable ASCII without spaces. Throws `SandboxConfigError`. */
export function readSecret(env: NodeJS.ProcessEnv, name: string): string | null {
  const file = env[`${name}_FILE`];
  let value = env[name] || null;
  if (value === null && file) {
    try {
      value = readFileSync(file, 'utf8').trim();
    } catch (error) {
      throw new SandboxConfigError(`${name}_FILE=${file} cannot be read: ${codeOf(error) ?? 'unknown error'}`);
    }
  }
  if (value !== null && !/^[\x21-\x7e]+$/.test(value))
    throw new SandboxConfigError(`${name} must be printable ASCII without spaces; make one with: openssl rand -hex 32`);
  return value;
}
