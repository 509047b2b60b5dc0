/** Spec 4.2: filters and sorts. A simple evaluator in this file computes the expected items. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parseInstant } from '../../src/contract/index.ts';
import { openSandboxDatabase, type SandboxDatabase } from '../../src/sandbox/database.ts';
import { Catalog } from '../../src/sandbox/stac/catalog.ts';
import type { NewItem } from '../../src/sandbox/stac/items.ts';
import { search } from '../../src/sandbox/stac/search.ts';
import { testFolder } from '../support/folders.ts';

let database: SandboxDatabase;
let catalog: Catalog;

beforeAll(async () => {
  database = openSandboxDatabase(await testFolder());
  catalog = new Catalog(database, { deadlineMs: 600_000 });
  catalog.collections.putCatalog({ id: 'root', parentId: null, title: 'root', description: 'root' });
  catalog.collections.put({
    ...{ id: 'a', catalogId: 'root', title: 'a', description: 'a', license: 'proprietary', keywords: [] },
    createdAtMs: 0,
  });
});
afterAll(async () => {
  await catalog.close();
  database.close();
});

/** Longitude and latitude. Every second item has another place. */
const placeOf = (i: number) => (i % 2 ? 20 : 0);

function newItem(i: number, x: unknown): NewItem {
  const at = placeOf(i);
  return {
    ...{ id: `i${i}`, collectionId: 'a', title: `i${i}`, datetimeMs: 0, properties: x === null ? {} : { x } },
    footprint: { type: 'Polygon', coordinates: [[[at, at], [at + 1, at], [at + 1, at + 1], [at, at]]] }, // oxfmt-ignore
    source: { kind: 'none' },
  };
}

/** Three truth values as numbers: `and` is the minimum, `or` the maximum. */
const truths = { no: 0, unknown: 1, yes: 2 } as const;
const truthOf = (truth: boolean | null) => (truth === null ? truths.unknown : truth ? truths.yes : truths.no);
const byCodePoints = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

interface Expression {
  readonly op: string;
  readonly args: readonly unknown[];
}

/** Evaluates CQL2 (OGC 21-065r2) for an item with the property `x`. */
function evaluate(json: unknown, x: unknown, at: number): number {
  if (typeof json === 'boolean') return truthOf(json);
  const { op, args } = json as Expression;
  const valueOf = (arg: unknown): unknown => {
    if (typeof arg !== 'object' || arg === null) return arg;
    return 'property' in arg ? x : new Date((arg as { timestamp: string }).timestamp);
  };
  const compared = (one: unknown, other: unknown, holds: (order: number) => boolean): boolean | null => {
    const [a, b] = [one, other];
    const msOf = (value: unknown) => (value instanceof Date ? value.getTime() : typeof value === 'string' ? parseInstant(value) : null); // oxfmt-ignore
    const [msA, msB] = [msOf(a), msOf(b)];
    if (msA !== null && msB !== null) return holds(msA - msB);
    if (typeof a === 'number' && typeof b === 'number') return holds(a - b);
    if (typeof a === 'boolean' && typeof b === 'boolean') return holds(Number(a) - Number(b));
    return typeof a === 'string' && typeof b === 'string' ? holds(byCodePoints(a, b)) : null;
  };
  /** Signs of the order for which a comparison holds. */
  const signs: Record<string, number[]> = { '=': [0], '<>': [-1, 1], '<': [-1], '<=': [-1, 0], '>': [1], '>=': [0, 1] };
  switch (op) {
    case 'and':
      return Math.min(...args.map((arg) => evaluate(arg, x, at)));
    case 'or':
      return Math.max(...args.map((arg) => evaluate(arg, x, at)));
    case 'not':
      return truths.yes - evaluate(args[0], x, at);
    case 'isNull':
      return truthOf((valueOf(args[0]) ?? null) === null);
    case 'between': {
      const [value, low, high] = args.map(valueOf);
      return Math.min(
        truthOf(compared(value, low, (order) => order >= 0)),
        truthOf(compared(value, high, (order) => order <= 0)),
      );
    }
    case 'in': {
      const value = valueOf(args[0]);
      const equal = (args[1] as unknown[]).map((one) => truthOf(compared(value, valueOf(one), (order) => order === 0)));
      return Math.max(truths.no, ...equal);
    }
    case 'like': {
      const value = valueOf(args[0]);
      if (typeof value !== 'string') return truths.unknown;
      // The only wildcard of a pattern in this test is its last character.
      return truthOf(value.startsWith((args[1] as string).slice(0, -1)));
    }
    case 't_intersects': {
      const ms = typeof x === 'string' ? parseInstant(x) : null;
      return truthOf(ms === null ? null : ms >= Date.UTC(2023, 0, 1) && ms < Date.UTC(2025, 0, 2));
    }
    case 's_intersects':
      return truthOf(at === 0);
    default:
      return truthOf(compared(valueOf(args[0]), valueOf(args[1]), (order) => signs[op]!.includes(Math.sign(order))));
  }
}

const text = fc.oneof(
  fc.constantFrom(
    ...['', 'a', 'b', 'aa', 'true', '5', 't', 'u', '\u{1f6f0}', '\uffee'],
    ...['2024-01-01T00:00:00Z', '2024-01-01T01:00:00+01:00'],
  ),
  fc.string({ maxLength: 3 }).filter((one) => !/[%_\\\0]/.test(one)),
);
const number = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(0.1, -0.5, 1e300, 2 ** 60));
const others = fc.constantFrom([1, 'x'], { k: 1 }, [], { k: null });
const value = fc.oneof(text, number, fc.boolean(), fc.constant(null), others);
const literal = fc.oneof(text, number, fc.boolean(), fc.constant({ timestamp: '2024-01-01T00:00:00Z' }));
const x = { property: 'x' };
const operand = fc.oneof(literal, fc.constant(null), fc.constant(x));
const condition = fc.oneof(
  fc.tuple(fc.constantFrom('=', '<>', '<', '<=', '>', '>='), operand, operand).map(([op, ...args]) => ({ op, args })),
  fc.tuple(operand, literal, literal).map((args) => ({ op: 'between', args })),
  fc.tuple(operand, fc.array(operand, { maxLength: 12 })).map((args) => ({ op: 'in', args })),
  fc.tuple(fc.oneof(text, fc.constant(x)), text).map(([one, start]) => ({ op: 'like', args: [one, `${start}%`] })),
  fc.constantFrom({ op: 'isNull', args: [x] }, true, false),
  fc.constant({ op: 't_intersects', args: [x, { interval: ['2023-01-01', '2025-01-01'] }] }),
  fc.constant({ op: 's_intersects', args: [{ property: 'geometry' }, { bbox: [0, 0, 1, 1] }] }),
);
const { filter } = fc.letrec<{ filter: unknown }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    condition,
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.array(tie('filter'), { minLength: 2, maxLength: 4 }))
      .map(([op, args]) => ({ op, args })),
    tie('filter').map((one) => ({ op: 'not', args: [one] })),
  ),
}));

test('a filter finds what the evaluator says; a sort has numbers, texts, others by their JSON, and then what has none', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(value, { minLength: 1, maxLength: 40 }),
      fc.array(filter, { minLength: 5 }),
      async (values, filters) => {
        database.exec('delete from items');
        for (const [i, one] of values.entries()) catalog.items.put(newItem(i, one));
        for (const json of filters) {
          const expected = values.flatMap((one, i) =>
            evaluate(json, one, placeOf(i)) === truths.yes ? [`i${i}`] : [],
          );
          const { items, numberMatched } = await search(catalog, { filter: json, limit: 100 });
          expect(items.map(({ id }) => id).sort(), JSON.stringify([json, values])).toEqual(expected.sort());
          expect(numberMatched).toBe(expected.length);
        }
        if (values.every((one) => one === null)) return;
        const kindOf = (one: unknown) => (typeof one === 'number' ? 0 : typeof one === 'string' ? 1 : 2);
        const order = (a: unknown, b: unknown) =>
          kindOf(a) - kindOf(b) ||
          (typeof a === 'number' ? a - (b as number) : byCodePoints(...([a, b].map((one) => (typeof one === 'string' ? one : JSON.stringify(one))) as [string, string]))); // oxfmt-ignore
        for (const direction of ['asc', 'desc'] as const) {
          const sign = direction === 'asc' ? 1 : -1;
          const expected = values
            .map((one, i) => ({ one, id: `i${i}` }))
            .sort((a, b) =>
              a.one === null || b.one === null
                ? Number(a.one === null) - Number(b.one === null) || byCodePoints(a.id, b.id)
                : sign * order(a.one, b.one) || byCodePoints(a.id, b.id),
            );
          const { items } = await search(catalog, { sortby: [{ field: 'properties.x', direction }], limit: 100 });
          expect(items.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
        }
      },
    ),
    { numRuns: 100 },
  );
});

test('integers over 2^53 are doubles, in a comparison and in a list', async () => {
  database.exec('delete from items');
  catalog.items.put(newItem(0, 2 ** 60));
  for (const [op, wanted] of [
    ['=', 2 ** 60],
    ['in', [1, 2 ** 60]],
  ])
    // oxfmt-ignore
    expect((await search(catalog, { filter: { op, args: [x, wanted] } })).numberMatched).toBe(1);
});

test('nested and and or in turns find what they say, however deep; a closed catalog refuses', async () => {
  database.exec('delete from items');
  for (let i = 0; i < 10; i++) catalog.items.put(newItem(i, i));
  // Only the innermost condition decides, because the others are `true and ...` or `false or ...`.
  for (const isLast of [true, false]) {
    const deep = Array.from({ length: 240 }).reduce<unknown>(
      (inner, _, i) => {
        const others = Array.from({ length: 17 }, () => i % 2 === 1);
        return { op: i % 2 ? 'and' : 'or', args: isLast ? [...others, inner] : [inner, ...others] };
      },
      { op: '>=', args: [x, 4] },
    );
    // The filter has 240 operators and 4,080 values, which is within the limits.
    expect((await search(catalog, { filter: deep })).numberMatched).toBe(6);
    expect((await search(catalog, { filter: { op: 'not', args: [deep] } })).numberMatched).toBe(4);
  }
  const closed = new Catalog(database);
  await closed.close();
  await expect(search(closed, {})).rejects.toThrow('the sandbox is closed');
});

test('a search that is late is answered 503, and the next one is answered; too many that wait are 503 busy', async () => {
  const hasty = new Catalog(database, { deadlineMs: 500, maxWaiting: 3 });
  try {
    // A search can be late because its thread still starts.
    const untilFound = () =>
      vi.waitFor(async () => expect((await search(hasty, { ids: ['i7'] })).items.map(({ id }) => id)).toEqual(['i7']), {
        timeout: 300_000,
      });
    database.exec('delete from items');
    hasty.items.inTransaction(() => {
      for (let i = 0; i < 20_000; i++) hasty.items.put(newItem(i, 'a'.repeat(2_000)));
    });
    await untilFound();
    // Each pattern reads two thousand characters of each item.
    const slow = { op: 'or', args: Array.from({ length: 20 }, (_, i) => ({ op: 'like', args: [x, `%a_b${i}%`] })) };
    const both = await Promise.allSettled([1, 2].map(() => search(hasty, { filter: slow })));
    for (const one of both) expect(one).toMatchObject({ reason: { status: 503, code: 'search_timeout' } });
    // At most one search runs and three wait.
    const many = await Promise.allSettled(Array.from({ length: 6 }, () => search(hasty, { filter: slow })));
    const codes = many.map((one) => one.status === 'rejected' && (one.reason as { code: string }).code);
    expect(codes).toContain('busy');
    expect(codes.every((code) => code === 'busy' || code === 'search_timeout')).toBe(true);
    await untilFound();
  } finally {
    await hasty.close();
  }
});
