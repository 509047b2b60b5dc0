/** The mistakes that the mutation command makes. */
import { expect, test } from 'vitest';
import { mutantsOf, withMutant } from '../../lab/mutate/mutants.ts';

const code = `import { a } from './a.ts';
export async function take(n: 1 | 2, list: string[]): Promise<boolean> {
  if (n < list.length) await a(n ?? 3);
  // mutant: equivalent, because nobody reads it
  const unread = 5;
  return !list.includes('x' + n) && true;
}
`;

test('each mistake is one change of the code, and an equivalent one is left out', () => {
  const found = mutantsOf('take.ts', code).map((mutant) => [
    mutant.line,
    mutant.kind,
    withMutant(code, mutant).split('\n')[mutant.line - 1]!.trim(),
  ]);
  expect(found).toEqual([
    [3, 'a condition is never true', 'if (false) await a(n ?? 3);'],
    [3, 'a condition is always true', 'if (true) await a(n ?? 3);'],
    [3, '< becomes <=', 'if (n <= list.length) await a(n ?? 3);'],
    [3, 'a call is left out', 'if (n < list.length) ;'],
    [3, 'the default is left out', 'if (n < list.length) await a(n);'],
    [3, 'a number is one more', 'if (n < list.length) await a(n ?? (3 + 1));'],
    [6, '&& becomes ||', "return !list.includes('x' + n) || true;"],
    [6, 'a negation is left out', "return list.includes('x' + n) && true;"],
    [6, 'true and false are confused', "return !list.includes('x' + n) && false;"],
  ]);
});
