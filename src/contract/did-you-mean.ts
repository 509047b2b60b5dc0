import { closestMatch } from 'leven';

/** `. Did you mean bandA?` for the known name that a mistyped one is nearest to; empty if none is near. Case does not count. */
export function didYouMean(given: string, known: readonly string[]): string {
  const byLowerCase = new Map(known.map((name) => [name.toLowerCase(), name]));
  const maxDistance = Math.max(1, Math.floor(given.length / 3));
  const nearest = closestMatch(given.slice(0, 100).toLowerCase(), [...byLowerCase.keys()], { maxDistance });
  const name = nearest === undefined ? undefined : byLowerCase.get(nearest);
  return name === undefined ? '' : `. Did you mean ${name}?`;
}
