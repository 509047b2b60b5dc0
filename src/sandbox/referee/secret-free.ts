/** Runs of characters that a key or a token may be, plain or encoded. */
const candidates = /[A-Za-z0-9_\-+/=%.~]{16,}/g;

const words = /[A-Za-z0-9_-]{16,}/g;
/** A secret that is shorter is found by no hash: it would take out words. */
const leastCharacters = 8;

/** The text, and what it is when it is decoded once and again. */
function decodings(text: string): string[] {
  const stages = [text];
  let last = text;
  for (let i = 0; i < 3; i++) {
    try {
      const next = decodeURIComponent(last);
      if (next === last) break;
      stages.push(next);
      last = next;
    } catch {
      break; // No percent-encoding.
    }
  }
  return stages;
}

/** Takes out of any JSON value the texts that are secrets, plain, URL-encoded or in base64. `isSecret` knows them by their hashes. */
export function secretFree(isSecret: (text: string) => boolean): <T>(value: T) => T {
  const isOrHolds = (text: string): boolean =>
    decodings(text).some((stage) =>
      [stage, ...stage.split(/[^A-Za-z0-9_\-+/=]+/)].some((part) =>
        [
          part,
          ...(['base64', 'base64url'] as const).map((encoding) => Buffer.from(part, encoding).toString('utf8')),
        ].some(
          // A part of a path or of a query may be one.
          (secret) =>
            [secret, ...secret.split(/[^A-Za-z0-9_-]+/)].some(
              (word) => word.length >= leastCharacters && isSecret(word),
            ),
        ),
      ),
    );
  const cleanText = (text: string) =>
    text
      // The least of a text first: what stands around a secret is left to read.
      .replace(words, (found) => (isOrHolds(found) ? '[redacted]' : found))
      .replace(candidates, (found) => (isOrHolds(found) ? '[redacted]' : found));
  const clean = (value: unknown): unknown => {
    if (typeof value === 'string') return cleanText(value);
    if (Array.isArray(value)) return value.map(clean);
    if (value !== null && typeof value === 'object')
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [cleanText(name), clean(inner)]));
    return value;
  };
  // Texts change, and the shape stays.
  return <T>(value: T) => clean(value) as T;
}
