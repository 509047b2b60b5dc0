/** Imports the default export of a module, whose type the caller knows and nothing checks. */
export const importDefault = async <T>(address: string): Promise<T> =>
  ((await import(address)) as { default: T }).default;
