import { operand } from './cql2-values.ts';
import type { Filter, FilterSubject } from './cql2.ts';
import type { PropertyColumn } from './property-column.ts';
import { conditionOnRows, type PropertyCondition, type RowsTest } from './property-condition.ts';
import { numberOf, truths } from './three-valued.ts';

/** Rows that a filter decides at once. */
export const blockRows = 4_096;

/** What a filter looks at, by row of the index. */
export interface FilterRows {
  /** Null for what the index itself has: `datetime`. */
  columnOf(property: string): PropertyColumn | null;
  datetimeMsOf(row: number): number;
  /** Good until it is asked for the next row. */
  subject(row: number): FilterSubject;
}

/** A filter over up to `blockRows` rows at a time. A part that the others have decided already is not asked. */
export function filterOnRows(filter: Filter, on: FilterRows): RowsTest {
  switch (filter.op) {
    case 'and':
      return joined(filter.parts.map((part) => filterOnRows(part, on)), truths.no, Math.min); // prettier-ignore
    case 'or':
      return joined(filter.parts.map((part) => filterOnRows(part, on)), truths.yes, Math.max); // prettier-ignore
    case 'not':
      return negated(filterOnRows(filter.part, on));
    case 'condition': {
      const column = on.columnOf(filter.condition.property);
      return column ? conditionOnRows(filter.condition, column) : conditionOnDatetime(filter.condition, on);
    }
    case 'test': {
      const { test } = filter;
      return rowByRow((row) => numberOf(test(on.subject(row))));
    }
  }
}

function rowByRow(decide: (row: number) => number): RowsTest {
  return (rows, count, results) => {
    for (let i = 0; i < count; i++) results[i] = decide(rows[i] as number);
  };
}

function joined(
  [first, ...others]: readonly RowsTest[],
  decided: number,
  join: (a: number, b: number) => number,
): RowsTest {
  const left = { rows: new Uint32Array(blockRows), places: new Uint16Array(blockRows) };
  const more = new Uint8Array(blockRows);
  return (rows, count, results) => {
    first?.(rows, count, results);
    for (const other of others) {
      let open = 0;
      for (let i = 0; i < count; i++) {
        if (results[i] === decided) continue;
        left.rows[open] = rows[i] as number;
        left.places[open++] = i;
      }
      if (open === 0) return;
      other(left.rows, open, more);
      for (let j = 0; j < open; j++) {
        const place = left.places[j] as number;
        results[place] = join(results[place] as number, more[j] as number);
      }
    }
  };
}

function negated(part: RowsTest): RowsTest {
  return (rows, count, results) => {
    part(rows, count, results);
    for (let i = 0; i < count; i++) results[i] = truths.yes - (results[i] as number);
  };
}

/** Most are compared with a moment, which needs no text. */
function conditionOnDatetime({ test, comparison }: PropertyCondition, on: FilterRows): RowsTest {
  const wanted = comparison?.with.ms ?? null;
  return comparison && wanted !== null
    ? rowByRow((row) => numberOf(comparison.holds(on.datetimeMsOf(row) - wanted)))
    : rowByRow((row) => numberOf(test(operand(new Date(on.datetimeMsOf(row)).toISOString()))));
}
