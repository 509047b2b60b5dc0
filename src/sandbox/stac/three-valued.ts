/** CQL2's logic: a comparison with a value that is not there is null, neither true nor false. */

export function every<Subject>(
  parts: readonly ((subject: Subject) => boolean | null)[],
  item: Subject,
): boolean | null {
  let result: boolean | null = true;
  for (const part of parts) {
    const one = part(item);
    if (one === false) return false;
    if (one === null) result = null;
  }
  return result;
}

export function some<Subject>(parts: readonly ((subject: Subject) => boolean | null)[], item: Subject): boolean | null {
  let result: boolean | null = false;
  for (const part of parts) {
    const one = part(item);
    if (one === true) return true;
    if (one === null) result = null;
  }
  return result;
}

export function both(a: boolean | null, b: boolean | null): boolean | null {
  return a === false || b === false ? false : a === null || b === null ? null : true;
}

export function negate(value: boolean | null): boolean | null {
  return value === null ? null : !value;
}
