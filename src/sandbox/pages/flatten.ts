/** Nested values as lines of path and text. */
export function flatten(value: unknown, path = ''): { path: string; text: string }[] {
  if (value === null || typeof value !== 'object') return path === '' ? [] : [{ path, text: String(value) }];
  return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path === '' ? name : `${path}.${name}`));
}
