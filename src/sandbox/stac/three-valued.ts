/** CQL2's logic: a comparison with a value that is not there is null, neither true nor false. */
export type Truth = boolean | null;

/** The same as numbers, in an order in which `and` is the least, `or` the greatest, and `not` the distance from `yes`. */
export const truths = { no: 0, unknown: 1, yes: 2 } as const;

export function numberOf(truth: Truth): number {
  return truth === null ? truths.unknown : truth ? truths.yes : truths.no;
}

export function truthOf(number: number): Truth {
  return number === truths.unknown ? null : number === truths.yes;
}
