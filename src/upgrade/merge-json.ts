type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = { readonly [name: string]: Json };

const isFields = (value: Json | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isSame = (a: Json | undefined, b: Json | undefined) => JSON.stringify(a) === JSON.stringify(b);

/** A file of JSON, merged field by field: lines that only lie side by side are no conflict. Null where both sides changed one field. */
export function mergeJson(base: string, mine: string, kits: string): string | null {
  const merged = mergeValue(...([base, mine, kits].map((text) => JSON.parse(text) as Json) as [Json, Json, Json]));
  return merged === conflict ? null : `${JSON.stringify(merged, null, 2)}\n`;
}

const conflict = Symbol('conflict');

/** Undefined is a field that is not there. */
function mergeValue(
  base: Json | undefined,
  mine: Json | undefined,
  kits: Json | undefined,
): Json | undefined | typeof conflict {
  if (isSame(mine, base) || isSame(mine, kits)) return kits;
  if (isSame(kits, base)) return mine;
  if (!isFields(mine) || !isFields(kits)) return conflict;
  const before = isFields(base) ? base : {};
  // In the kit's order, the fork's own behind.
  const merged: Record<string, Json> = {};
  for (const name of new Set([...Object.keys(kits), ...Object.keys(mine)])) {
    const value = mergeValue(before[name], mine[name], kits[name]);
    if (value === conflict) return conflict;
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}
