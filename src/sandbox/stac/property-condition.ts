import { compare, operand, type Holds, type Operand } from './cql2-values.ts';
import type { PropertyColumn } from './property-column.ts';

/** What a filter wants of one property alone: it is decided once for each of its values. */
export interface PropertyCondition {
  /** Its place among the conditions of its filter. */
  readonly place: number;
  readonly property: string;
  readonly test: (value: Operand) => boolean | null;
  /** Where it is a comparison with one value. */
  readonly comparison?: { readonly with: Operand; readonly holds: Holds };
}

/** Decides by the row of an item. */
export type RowCondition = (row: number) => boolean | null;

export function conditionOf(place: number, property: string, test: PropertyCondition['test']): PropertyCondition {
  return { place, property, test };
}

export function comparisonOf(place: number, property: string, value: Operand, holds: Holds): PropertyCondition {
  return { place, property, test: (one) => compare(one, value, holds), comparison: { with: value, holds } };
}

/** The condition on the items whose column is given. */
export function conditionOnRows(condition: PropertyCondition, column: PropertyColumn): RowCondition {
  const { codes } = column.data;
  const decide = decideCodes(condition, column);
  return (row) => (row < codes.length ? decide(codes[row] as number) : condition.test(operand(column.valueOf(row))));
}

type Decide = (code: number) => boolean | null;

function decideCodes({ test, comparison }: PropertyCondition, column: PropertyColumn): Decide {
  const byValue = decidedOnce(column, test);
  if (!comparison) return byValue;
  const { value, ms } = comparison.with;
  if (ms !== null) return decideMoments(column, ms, comparison.holds, byValue);
  return typeof value === 'number' || typeof value === 'string'
    ? decideByPlace(column, value, comparison.holds)
    : byValue;
}

/** Codes are in the order of values: where a number or text would stand decides all of its kind. */
function decideByPlace(column: PropertyColumn, value: number | string, holds: Holds): Decide {
  const { numbers, textCount } = column.data;
  const from = typeof value === 'number' ? 1 : numbers.length + 1;
  const end = typeof value === 'number' ? numbers.length + 1 : numbers.length + textCount + 1;
  const first = column.firstCodeFrom(value);
  const isThere = first < end && column.valueOfCode(first) === value;
  const [before, at, after] = [holds(-1), isThere ? holds(0) : holds(1), holds(1)];
  return (code) => (code < from || code >= end ? null : code < first ? before : code === first ? at : after);
}

function decideMoments(column: PropertyColumn, ms: number, holds: Holds, byValue: Decide): Decide {
  const { instants, numbers } = column.data;
  const firstText = numbers.length + 1;
  return (code) => {
    const own = instants[code - firstText];
    return own === undefined || Number.isNaN(own) ? byValue(code) : holds(own - ms);
  };
}

/** No value is looked at before a row that has it, nor twice. */
function decidedOnce(column: PropertyColumn, test: PropertyCondition['test']): Decide {
  const [open, no, yes, unknown] = [0, 1, 2, 3];
  const decided = new Uint8Array(column.valueCount + 1);
  return (code) => {
    if (decided[code] === open) {
      const result = test(operand(column.valueOfCode(code)));
      decided[code] = result === null ? unknown : result ? yes : no;
    }
    return decided[code] === unknown ? null : decided[code] === yes;
  };
}
