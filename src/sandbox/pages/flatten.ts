/** Nested values as lines of path and text, without the objects that `takes` takes for itself. */
export function flatten(
  value: unknown,
  path = '',
  takes: (object: Readonly<Record<string, unknown>>) => boolean = () => false,
): { path: string; text: string }[] {
  if (value === null || typeof value !== 'object') return path === '' ? [] : [{ path, text: String(value) }];
  // An array, too, has fields by name.
  if (takes(value as Readonly<Record<string, unknown>>)) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    flatten(inner, path === '' ? name : `${path}.${name}`, takes),
  );
}
