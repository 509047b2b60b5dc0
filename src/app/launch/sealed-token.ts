import { createHash, hkdfSync } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader, errors } from 'jose';
import { KitError } from '../../contract/index.ts';
import type { Secret } from '../config.ts';

/** Encrypts identity tokens at rest: a JWE (RFC 7516) each, by AES-256-GCM, bound to the launch that it belongs to. */
export interface TokenSealer {
  seal(launchId: string, token: string): Promise<string>;
  /** Throws `TokenUnreadableError` where no secret that is configured has sealed it, or it was sealed for another launch. */
  open(launchId: string, sealed: string): Promise<string>;
}

/** The session is over: its token was sealed with a secret that is configured no more. */
export class TokenUnreadableError extends KitError {
  constructor() {
    super(
      'token_unreadable',
      "the app can no longer read this session's token, because its secret has changed. Launch the app again from the marketplace.",
      { status: 409 },
    );
  }
}

interface Key {
  /** Identifies a secret without revealing it. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

function keyOf(secret: Secret): Key {
  const bytes = new Uint8Array(hkdfSync('sha256', secret.reveal(), '', 'identity tokens at rest', 32));
  return { id: createHash('sha256').update(bytes).digest('base64url').slice(0, 16), bytes };
}

/** The first secret seals, each of them opens: so that a secret can be replaced without ending a session. */
export function createTokenSealer([newest, ...older]: readonly [Secret, ...Secret[]]): TokenSealer {
  const first = keyOf(newest);
  const keys = [first, ...older.map(keyOf)];
  return {
    seal(launchId, token) {
      return new CompactEncrypt(new TextEncoder().encode(token))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: first.id, launch: launchId })
        .encrypt(first.bytes);
    },
    async open(launchId, sealed) {
      try {
        const { kid, launch } = decodeProtectedHeader(sealed);
        const key = keys.find((sealingKey) => sealingKey.id === kid);
        if (!key || launch !== launchId) throw new TokenUnreadableError();
        const { plaintext } = await compactDecrypt(sealed, key.bytes, {
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM'],
        });
        return new TextDecoder().decode(plaintext);
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof TypeError) throw new TokenUnreadableError();
        throw error;
      }
    },
  };
}

/** Tells a token seen before from a new one without keeping it. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
