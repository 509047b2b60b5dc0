import type { SandboxDatabase } from './database.ts';

/** Runs a query that counts: one row with one number. */
export const countOf = (database: SandboxDatabase, query: string, ...values: readonly unknown[]): number =>
  database
    .prepare<unknown[], number>(query)
    .pluck()
    .get(...values) ?? 0;

/** A row that is certain to be there: it was written just now, or another row refers to it. */
export function stored<T>(row: T | null | undefined): T {
  if (row === null || row === undefined) throw new Error('a row that must be there is gone');
  return row;
}
