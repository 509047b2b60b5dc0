/** True for an object with fields: not null, and no array. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses JSON that the program itself has written. The caller states its type, which nothing checks. */
export const ownJson = <T>(text: string): T => JSON.parse(text) as T;
