/** Runs of characters that a key or a token may be, plain or encoded. */
const candidates = /[A-Za-z0-9_\-+/=%.~]{16,}/g;

/** Takes out of any JSON value the texts that are secrets, plain, URL-encoded or in base64. `isSecret` knows them by their hashes. */
export function secretFree(isSecret: (text: string) => boolean): <T>(value: T) => T {
  const forms = (text: string): string[] => {
    const decoded = [
      text,
      Buffer.from(text, 'base64').toString('utf8'),
      Buffer.from(text, 'base64url').toString('utf8'),
    ];
    try {
      decoded.push(decodeURIComponent(text));
    } catch {
      // No percent-encoding.
    }
    // A part of a path or of a query may be one.
    return decoded.flatMap((one) => [one, ...one.split(/[^A-Za-z0-9_-]+/)]).filter((one) => one.length >= 8);
  };
  const cleanText = (text: string) =>
    text.replace(candidates, (found) => (forms(found).some(isSecret) ? '[redacted]' : found));
  const clean = (value: unknown): unknown => {
    if (typeof value === 'string') return cleanText(value);
    if (Array.isArray(value)) return value.map(clean);
    if (value !== null && typeof value === 'object')
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [cleanText(name), clean(inner)]));
    return value;
  };
  return <T>(value: T) => clean(value) as T;
}
