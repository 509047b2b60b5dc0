import { createHmac, hash, createSecretKey, randomBytes } from 'node:crypto';
import { equalSecrets } from '../server/index.ts';
import type { SandboxDatabase } from './database.ts';
import { stored } from './rows.ts';

/** An opaque, URL-safe, unguessable id of 128 random bits. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(16).toString('base64url')}`;
}

/** Length of every secret that the sandbox makes. */
export const secretCharacters = 43;

/** A new secret of 256 random bits, URL-safe. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns the stored form of a key or token. Both are random, so a plain hash reveals nothing. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** Signs for this sandbox: with a key of its own, made once and kept in its database. */
export interface Signer {
  /** URL-safe HMAC-SHA256 over `purpose` and `values`, unambiguous whatever they hold. */
  sign(purpose: string, ...values: readonly string[]): string;
  verify(signature: string, purpose: string, ...values: readonly string[]): boolean;
}

export function createSigner(database: SandboxDatabase): Signer {
  database.prepare(`insert into settings values ('signing-key', ?) on conflict (name) do nothing`).run(newSecret());
  const value = stored(
    database.prepare<[], string>(`select value from settings where name = 'signing-key'`).pluck().get(),
  );
  const key = createSecretKey(value, 'utf8');
  const sign = (purpose: string, ...values: readonly string[]) =>
    createHmac('sha256', key)
      .update(JSON.stringify([purpose, ...values]))
      .digest('base64url');
  return { sign, verify: (signature, purpose, ...values) => equalSecrets(signature, sign(purpose, ...values)) };
}
