/** Runs in a thread: reads columns of the catalog, so that the sandbox answers meanwhile. */
import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import type { ColumnData } from './property-column.ts';
import { readColumn, readColumnsOfFewValues } from './read-column.ts';

export interface ColumnOrder {
  readonly id: number;
  /** One is read whatever it has; of several those that have few values. */
  readonly names: readonly string[];
  readonly lastNumber: number;
}

/** In the order of the names. */
export type ColumnAnswer = { readonly id: number } & (
  { readonly columns: readonly (ColumnData | null)[] } | { readonly error: string }
);

const database = new Sqlite(String(workerData), { readonly: true });
// Sorting is as quick with little of it: what does not fit goes to a file.
database.pragma('cache_size = -8000');

parentPort?.on('message', ({ id, names, lastNumber }: ColumnOrder) => {
  try {
    const [name, second] = names;
    const columns =
      name !== undefined && second === undefined
        ? [readColumn(database, name, lastNumber)]
        : readColumnsOfFewValues(database, names, lastNumber);
    const arrays = columns.flatMap((column) =>
      column ? [column.codes, column.numbers, column.texts, column.ends, column.instants] : [],
    );
    const answer: ColumnAnswer = { id, columns };
    parentPort?.postMessage(
      answer,
      arrays.map(({ buffer }) => buffer as ArrayBuffer),
    );
  } catch (error) {
    const answer: ColumnAnswer = { id, error: (error as Error).message };
    parentPort?.postMessage(answer);
  }
});
