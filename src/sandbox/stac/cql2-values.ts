import { parseInstant } from '../../contract/index.ts';
import { compareTexts } from './compare-values.ts';

/** A value of CQL2 with what it is as a moment; `ms` is null where it is none. */
export interface Operand {
  readonly value: unknown;
  readonly ms: number | null;
}

/** A moment, told apart from a number. */
export class Instant {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

export function operand(value: unknown): Operand {
  return { value, ms: toMs(value) };
}

function toMs(value: unknown): number | null {
  if (value instanceof Instant) return value.ms;
  return typeof value === 'string' ? parseInstant(value) : null;
}

/** What an order has to be: negative where the first is before the second. */
export type Holds = (order: number) => boolean;

/** Null where the two cannot be compared. A timestamp compares with a text that is one. */
export function compare({ value: a, ms: x }: Operand, { value: b, ms: y }: Operand, holds: Holds): boolean | null {
  if ((a ?? null) === null || (b ?? null) === null) return null;
  if (x !== null && y !== null) return holds(x - y);
  if (typeof a === 'number' && typeof b === 'number') return holds(a - b);
  if (typeof a === 'string' && typeof b === 'string') return holds(compareTexts(a, b));
  if (typeof a === 'boolean' && typeof b === 'boolean') return holds(Number(a) - Number(b));
  return null;
}

const isEqual: Holds = (order) => order === 0;

/** `in`: constants are looked up, however many there are; what each subject brings is compared one by one. */
export function isOneOf<Subject>(
  value: (item: Subject) => Operand,
  list: readonly ({ readonly constant: Operand } | { readonly of: (item: Subject) => Operand })[],
): (item: Subject) => boolean | null {
  const constants = list.flatMap((one) => ('constant' in one ? [one.constant] : []));
  const others = list.flatMap((one) => ('of' in one ? [one.of] : []));
  const plain = new Set(constants.map((one) => one.value));
  const moments = new Set(constants.flatMap((one) => (one.ms === null ? [] : [one.ms])));
  // One of each kind stands for all of its kind where none is equal: is the item's value comparable with them?
  const kinds = [...new Map(constants.map((one) => [kindOf(one), one])).values()];
  return (item) => {
    const wanted = value(item);
    if ((wanted.value ?? null) === null) return list.length === 0 ? false : null;
    if (
      (wanted.value instanceof Instant ? false : plain.has(wanted.value)) ||
      (wanted.ms !== null && moments.has(wanted.ms))
    )
      return true;
    let result: boolean | null = false;
    for (const one of [...kinds.map((kind) => () => kind), ...others]) {
      const isSame = compare(wanted, one(item), isEqual);
      if (isSame === true) return true;
      if (isSame === null) result = null;
    }
    return result;
  };
}

function kindOf({ value, ms }: Operand): string {
  return value instanceof Instant ? 'instant' : value === null ? 'null' : `${typeof value} ${ms !== null}`;
}
