/**
 * The order of values that items have: numbers, then texts, then what is neither by its JSON. Negative where `a` comes first.
 * What is not there comes last, whatever the sign: -1 turns the order of the others round.
 */
export function compareValues(a: unknown, b: unknown, sign: 1 | -1): number {
  const [hasA, hasB] = [(a ?? null) !== null, (b ?? null) !== null];
  if (!hasA || !hasB) return Number(hasB) - Number(hasA);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  if (kindOf(a) !== kindOf(b)) return sign * (kindOf(a) - kindOf(b));
  return (
    sign * (typeof a === 'string' ? compareTexts(a, b as string) : compareTexts(JSON.stringify(a), JSON.stringify(b)))
  );
}

/** By code points, as SQLite has texts: the same as by UTF-16 units, but behind U+D7FF. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  if (surrogates.test(a) || surrogates.test(b)) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}

const surrogates = /[\ud800-\udfff]/;

function kindOf(value: unknown): 0 | 1 | 2 {
  return typeof value === 'number' ? 0 : typeof value === 'string' ? 1 : 2;
}
