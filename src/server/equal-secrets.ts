import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in a time that does not depend on the values. */
export function equalSecrets(a: string, b: string): boolean {
  const hashOf = (value: string) => createHash('sha256').update(value).digest();
  return timingSafeEqual(hashOf(a), hashOf(b));
}
