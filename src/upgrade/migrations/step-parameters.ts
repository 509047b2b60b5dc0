/** Steps as 0.1.0 wrote them, parameters in JSON Schema, as 0.2.0 does. */

const places = [
  [/'\.\.\/step\.ts'/g, "'../../../index.ts'"],
  [/'\.\.\/\.\.\/raster\//g, "'../../../raster/"],
  [/'\.\.\/\.\.\/contract\//g, "'../../../contract/"],
  [/'\.\.\/(ndvi|cog|hillshade)\//g, "'../../../steps/$1/"],
] as const;

/** The step's text, and what it could not convert; null where it could. */
export function convertStep(source: string): { readonly text: string; readonly problem: string | null } {
  const moved = places.reduce((text, [pattern, by]) => text.replace(pattern, by), source);
  const start = /\n {2}parameters: (?=\{)/.exec(moved);
  if (!start) return { text: moved, problem: null };
  const from = start.index + start[0].length;
  const literal = bracketed(moved, from);
  const converted = literal === null ? null : convertParameters(literal);
  if (literal === null || converted === null)
    return {
      text: moved,
      problem: 'write the parameters as z.object({...}) (docs/steps.md): they are not plain JSON Schema',
    };
  const text = (moved.slice(0, from) + converted + moved.slice(from + literal.length))
    .replace(/defineStep<[^(]*>\(/, 'defineStep(')
    .replace(/import \{ defineStep\b/, 'import { defineStep, z');
  return { text, problem: null };
}

/** From the bracket at `from` to the one that closes it; null where none does. */
function bracketed(text: string, from: number): string | null {
  let depth = 0;
  let quote: string | null = null;
  for (let i = from; i < text.length; i++) {
    const character = text[i]!;
    if (quote !== null) {
      if (character === '\\') i += 1;
      else if (character === quote) quote = null;
    } else if (/['"`]/.test(character)) quote = character;
    else if (/[{[(]/.test(character)) depth += 1;
    else if (/[}\])]/.test(character) && (depth -= 1) === 0) return text.slice(from, i + 1);
  }
  return null;
}

/** The values of an object literal by name, as they are written; null where it has more than that. */
function entriesOf(literal: string): Map<string, string> | null {
  const entries = new Map<string, string>();
  const inner = literal.slice(1, -1);
  for (let at = 0; at < inner.length;) {
    const rest = inner.slice(at);
    const gap = /^[\s,]+/.exec(rest);
    if (gap) {
      at += gap[0].length;
      continue;
    }
    const [head, name] = /^(\w+):\s*/.exec(rest) ?? [];
    if (head === undefined || name === undefined) return null;
    at += head.length;
    const value = valueAt(inner, at);
    if (value === '') return null;
    entries.set(name, value.trim());
    at += value.length;
  }
  return entries;
}

function valueAt(text: string, from: number): string {
  for (let i = from; i < text.length; i++) {
    const character = text[i]!;
    if (character === ',') return text.slice(from, i);
    if (/['"`]/.test(character)) {
      const end = new RegExp(`^${character}(?:\\\\.|[^\\\\${character}])*${character}`, 's').exec(text.slice(i));
      if (!end) return '';
      i += end[0].length - 1;
    } else if (/[{[(]/.test(character)) {
      const inside = bracketed(text, i);
      if (inside === null) return '';
      i += inside.length - 1;
    }
  }
  return text.slice(from);
}

function convertParameters(literal: string): string | null {
  const parameters = entriesOf(literal);
  if (parameters === null) return null;
  const converted: string[] = [];
  for (const [name, schema] of parameters) {
    const entries = schema.startsWith('{') ? entriesOf(schema) : null;
    const chain = entries && convertSchema(entries);
    if (chain === null) return null;
    converted.push(`    ${name}: ${chain},`);
  }
  return `z.object({\n${converted.join('\n')}\n  })`;
}

const bases: Readonly<Record<string, string>> = {
  "'string'": 'z.string()',
  "'number'": 'z.number()',
  "'integer'": 'z.int()',
  "'boolean'": 'z.boolean()',
};
const bounds: readonly (readonly [string, string])[] = [
  ['minimum', 'min'],
  ['maximum', 'max'],
  ['minLength', 'min'],
  ['maxLength', 'max'],
];
const known = new Set(['type', 'title', 'description', 'default', 'enum', 'pattern', ...bounds.map(([name]) => name)]);

function convertSchema(entries: ReadonlyMap<string, string>): string | null {
  const base = bases[entries.get('type') ?? ''];
  if (base === undefined || [...entries.keys()].some((name) => !known.has(name))) return null;
  const choices = entries.get('enum');
  let chain =
    choices === undefined ? base : entries.get('type') === "'string'" ? `z.enum(${choices})` : `z.literal(${choices})`;
  if (choices === undefined)
    for (const [name, method] of bounds) if (entries.has(name)) chain += `.${method}(${entries.get(name)})`;
  if (entries.has('pattern')) chain += `.regex(new RegExp(${entries.get('pattern')}))`;
  if (entries.has('default')) chain += `.default(${entries.get('default')})`;
  const told = ['title', 'description'].flatMap((name) => (entries.has(name) ? [`${name}: ${entries.get(name)}`] : []));
  return told.length > 0 ? `${chain}.meta({ ${told.join(', ')} })` : chain;
}
