/** One page of a list that is too long for one. */
export interface ListPage {
  /** From 1. */
  readonly number: number;
  readonly size: number;
  readonly skip: number;
  readonly total: number;
  readonly last: number;
}

/** A query without the fields that a form has sent empty. */
export const withoutEmpty = (query: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));

/** By `page` of the query; what is no page is the first or the last. */
export function pageOf(query: Readonly<Record<string, unknown>>, total: number, size: number): ListPage {
  const last = Math.max(1, Math.ceil(total / size));
  const asked = Number(query['page'] ?? 1);
  const number = Number.isInteger(asked) ? Math.min(last, Math.max(1, asked)) : 1;
  return { number, size, skip: (number - 1) * size, total, last };
}
