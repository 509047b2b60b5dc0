import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import type { Secret } from '../config.ts';

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/** Encrypts identity tokens at rest: AES-256-GCM, bound to the launch they belong to. */
export interface TokenSealer {
  seal(launchId: string, token: string): string;
  /** Throws where the secret or the launch is not the one it was sealed with. */
  open(launchId: string, sealed: string): string;
}

export function createTokenSealer(secret: Secret): TokenSealer {
  const key = Buffer.from(hkdfSync('sha256', secret.reveal(), '', 'identity tokens at rest', 32));
  return {
    seal(launchId, token) {
      const iv = randomBytes(ivBytes);
      const encrypt = createCipheriv(cipher, key, iv).setAAD(Buffer.from(launchId));
      const text = Buffer.concat([encrypt.update(token, 'utf8'), encrypt.final()]);
      return Buffer.concat([iv, encrypt.getAuthTag(), text]).toString('base64url');
    },
    open(launchId, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      const decrypt = createDecipheriv(cipher, key, bytes.subarray(0, ivBytes)).setAAD(Buffer.from(launchId));
      decrypt.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
      return Buffer.concat([decrypt.update(bytes.subarray(ivBytes + tagBytes)), decrypt.final()]).toString('utf8');
    },
  };
}

/** Tells a token seen before from a new one without keeping it. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
