type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = { readonly [name: string]: Json };

const isFields = (value: Json | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isSame = (a: Json | undefined, b: Json | undefined) => JSON.stringify(a) === JSON.stringify(b);

/** A file of JSON, merged field by field: lines that only lie side by side are no conflict. Null where both sides changed one field. */
export function mergeJson(base: string, mine: string, kits: string): string | null {
  const [before, fork, kit] = [base, mine, kits].map(read);
  if (!before || !fork || !kit) return null;
  const own = Object.fromEntries(
    Object.entries(fork).filter(([name, value]) => ofTheFork.has(name) && !isSame(value, before[name])),
  );
  const merged = mergeValue({ ...before, ...own }, fork, { ...kit, ...own });
  return merged === conflict ? null : `${JSON.stringify(merged, null, 2)}\n`;
}

/** What a package is called is its own, whatever the kit's next release calls itself. */
const ofTheFork = new Set(['name', 'version', 'description', 'author', 'license', 'private', 'repository', 'homepage']);

function read(text: string): Fields | null {
  try {
    const value = JSON.parse(text) as Json;
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
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
