/** CQL2's logic: a comparison with a value that is not there is null, neither true nor false. */
export type Truth = boolean | null;

/** The same as numbers, in an order in which `and` is the least, `or` the greatest, and `not` the distance from `yes`. */
export const [no, unknown, yes] = [0, 1, 2];

export function numberOf(truth: Truth): number {
  return truth === null ? unknown : truth ? yes : no;
}

export function truthOf(number: number): Truth {
  return number === unknown ? null : number === yes;
}
