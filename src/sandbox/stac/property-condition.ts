import { compare, operand, type Holds, type Operand } from './cql2-values.ts';
import type { PropertyColumn } from './property-column.ts';
import { numberOf, truths, type Truth } from './three-valued.ts';

/** What a filter wants of one property alone: it is decided once for each of its values. */
export interface PropertyCondition {
  readonly property: string;
  readonly test: (value: Operand) => Truth;
  /** Where it is a comparison with one value. */
  readonly comparison?: { readonly with: Operand; readonly holds: Holds };
}

export function comparisonOf(property: string, value: Operand, holds: Holds): PropertyCondition {
  return { property, test: (one) => compare(one, value, holds), comparison: { with: value, holds } };
}

/** Decides `count` rows, each as a number of `three-valued.ts`. */
export type RowsTest = (rows: Uint32Array, count: number, results: Uint8Array) => void;

/** The condition on the items whose column is given. */
export function conditionOnRows({ test, comparison }: PropertyCondition, column: PropertyColumn): RowsTest {
  const byValue = decidedOnce(column, test);
  const decideLater = (row: number) => numberOf(test(operand(column.valueOf(row))));
  if (!comparison) return byCode(column, byValue, decideLater);
  const { value, ms } = comparison.with;
  if (ms !== null) return byCode(column, decideMoments(column, ms, comparison.holds, byValue), decideLater);
  return typeof value === 'number' || typeof value === 'string'
    ? byPlace(column, value, comparison.holds, decideLater)
    : byCode(column, byValue, decideLater);
}

/** Decides a code, or a row that has none yet. */
type Decide = (codeOrRow: number) => number;

function byCode({ data: { codes } }: PropertyColumn, decide: Decide, decideLater: Decide): RowsTest {
  return (rows, count, results) => {
    for (let i = 0; i < count; i++) {
      const row = rows[i] as number;
      const code = codes[row];
      results[i] = code === undefined ? decideLater(row) : decide(code);
    }
  };
}

/** Codes are in the order of values: where a number or text would stand decides all of its kind. */
function byPlace(column: PropertyColumn, value: number | string, holds: Holds, decideLater: Decide): RowsTest {
  const { codes, numbers, textCount } = column.data;
  const from = typeof value === 'number' ? 1 : numbers.length + 1;
  const end = typeof value === 'number' ? numbers.length + 1 : numbers.length + textCount + 1;
  const first = column.firstCodeFrom(value);
  const isThere = first < end && column.valueOfCode(first) === value;
  const [before, after] = [numberOf(holds(-1)), numberOf(holds(1))];
  const at = isThere ? numberOf(holds(0)) : after;
  return (rows, count, results) => {
    for (let i = 0; i < count; i++) {
      const row = rows[i] as number;
      const code = codes[row];
      results[i] =
        code === undefined
          ? decideLater(row)
          : code < from || code >= end
            ? truths.unknown
            : code < first
              ? before
              : code === first
                ? at
                : after;
    }
  };
}

function decideMoments(column: PropertyColumn, ms: number, holds: Holds, byValue: Decide): Decide {
  const { instants, numbers } = column.data;
  const firstText = numbers.length + 1;
  return (code) => {
    const own = instants[code - firstText];
    return own === undefined || Number.isNaN(own) ? byValue(code) : numberOf(holds(own - ms));
  };
}

/** No value is looked at before a row that has it, nor twice. */
function decidedOnce(column: PropertyColumn, test: PropertyCondition['test']): Decide {
  // By code, one more than what it is: 0 is open. Made when the first is asked for, as most conditions need none.
  let decided: Uint8Array | null = null;
  return (code) => {
    decided ??= new Uint8Array(column.valueCount + 1);
    if (decided[code] === 0) decided[code] = 1 + numberOf(test(operand(column.valueOfCode(code))));
    return (decided[code] as number) - 1;
  };
}
