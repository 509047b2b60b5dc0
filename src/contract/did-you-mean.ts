import { closestMatch } from 'leven';

/** `. Did you mean bandA?` for the known name that a mistyped one is nearest to; empty if none is near. Case does not count. */
export function didYouMean(given: string, known: readonly string[]): string {
  const byLowerCase = new Map(known.map((name) => [name.toLowerCase(), name]));
  const typed = given.slice(0, 100).toLowerCase();
  const names = [...byLowerCase.keys()];
  // A quarter of the letters: lwir11 is not swir16. Letters in another order count as one mistake.
  const maxDistance = Math.max(1, Math.floor(typed.length / 4));
  const nearest =
    names.find((name) => lettersOf(name) === lettersOf(typed)) ?? closestMatch(typed, names, { maxDistance });
  const name = nearest === undefined ? undefined : byLowerCase.get(nearest);
  return name === undefined ? '' : `. Did you mean ${name}?`;
}

const lettersOf = (name: string) => [...name].toSorted().join('');
