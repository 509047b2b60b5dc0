import { compare, operand, type Holds, type Operand } from './cql2-values.ts';
import type { PropertyColumn } from './property-column.ts';
import { numberOf, unknown, type Truth } from './three-valued.ts';

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
  const { codes } = column.data;
  const decisions = comparison ? decisionsOf(comparison, column) : undecided(column);
  const decide = (code: number) => (decisions[code] = numberOf(test(operand(column.valueOfCode(code)))));
  return (rows, count, results) => {
    for (let i = 0; i < count; i++) {
      const row = rows[i] as number;
      const code = codes[row];
      const decision = code === undefined ? numberOf(test(operand(column.valueOf(row)))) : (decisions[code] as number);
      // No value is looked at before a row that has it, nor twice.
      results[i] = decision === open ? decide(code as number) : decision;
    }
  };
}

const open = 255;

function undecided({ valueCount }: PropertyColumn): Uint8Array {
  return new Uint8Array(valueCount + 1).fill(open);
}

/** By code. Codes are in the order of values, so that most need no look at their values. */
function decisionsOf(
  { with: { value, ms }, holds }: NonNullable<PropertyCondition['comparison']>,
  column: PropertyColumn,
): Uint8Array {
  const decisions = undecided(column);
  const { numbers, textCount, instants } = column.data;
  const firstText = numbers.length + 1;
  if (ms !== null) {
    instants.forEach((own, i) => {
      if (!Number.isNaN(own)) decisions[firstText + i] = numberOf(holds(own - ms));
    });
    return decisions;
  }
  if (typeof value !== 'number' && typeof value !== 'string') return decisions;
  // Where a number or text would stand decides all of its kind.
  const [from, end] = typeof value === 'number' ? [1, firstText] : [firstText, firstText + textCount];
  const first = column.firstCodeFrom(value);
  const isThere = first < end && column.valueOfCode(first) === value;
  decisions.fill(unknown);
  decisions.fill(numberOf(holds(-1)), from, first);
  decisions.fill(numberOf(holds(1)), first, end);
  if (isThere) decisions[first] = numberOf(holds(0));
  return decisions;
}
