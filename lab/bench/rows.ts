/** A figure of a bench with its goal: every script of `bench/` tells its own, and `npm run bench` puts them into one table. */
import { appendFileSync } from 'node:fs';

export interface BenchRow {
  /** In words, with the size of the work. */
  readonly what: string;
  readonly unit: string;
  /** One of each round. */
  readonly ours: readonly number[];
  /** Measured in turns with ours, in the same run; null where a figure has no peer. */
  readonly peer: { readonly name: string; readonly values: readonly number[] } | null;
  /** Goal for the median: of the ratio of our figure to the peer's, or of our figure if there is no peer. */
  readonly goal: { readonly most: number } | { readonly least: number };
}

export const median = (numbers: readonly number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1] ?? NaN, sorted[sorted.length >> 1] ?? NaN];
  return (low + high) / 2;
};

/** Ratio of our figure to the peer's in each round. Without a peer, our figures. */
export const judgedOf = ({ ours, peer }: BenchRow): number[] =>
  ours.map((value, i) => (peer ? value / (peer.values[i] ?? NaN) : value));

export function isMet(row: BenchRow): boolean {
  const judged = median(judgedOf(row));
  return 'most' in row.goal ? judged <= row.goal.most : judged >= row.goal.least;
}

const shown = (value: number) =>
  Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
const spread = (values: readonly number[]) =>
  values.length < 2
    ? shown(median(values))
    : `${shown(median(values))} (${shown(Math.min(...values))} to ${shown(Math.max(...values))})`;

/** A Markdown table: medians, with the least and the most of the rounds in parentheses. With `before`, the figures of an earlier run too. */
export function tableOf(rows: readonly BenchRow[], before?: readonly BenchRow[]): string {
  const earlierOf = (row: BenchRow) =>
    before?.find((one) => one.what === row.what && one.unit === row.unit && one.peer?.name === row.peer?.name);
  const cells = rows.map((row) => [
    row.what,
    `${spread(row.ours)} ${row.unit}`,
    row.peer ? `${row.peer.name}: ${spread(row.peer.values)} ${row.unit}` : '',
    row.peer ? spread(judgedOf(row)) : '',
    `${'most' in row.goal ? `at most ${row.goal.most}` : `at least ${row.goal.least}`}${row.peer ? '' : ` ${row.unit}`}`,
    isMet(row) ? 'met' : 'MISSED',
    ...(before ? [earlierOf(row) ? spread(judgedOf(earlierOf(row)!)) : ''] : []),
  ]);
  const names = ['work', 'ours', 'peer', 'ratio', 'goal', '', ...(before ? ['last record'] : [])];
  return [names, names.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** A script ends by it where what it needs is not here. */
export const skippedStatus = 77;

/** Prints the rows of a script, hands them to `npm run bench` where that has started it, and ends with 1 where a goal is missed. */
export function tell(rows: readonly BenchRow[]): void {
  console.log(`\n${tableOf(rows)}`);
  const file = process.env['BENCH_ROWS'];
  if (file) appendFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  if (!rows.every(isMet)) process.exitCode = 1;
}
