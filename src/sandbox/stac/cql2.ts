import type { Geometry } from 'geojson';
import {
  bbox as bboxSchema,
  geojsonGeometry,
  limits,
  parseInstant,
  positionsOf,
  type Interval,
} from '../../contract/index.ts';
import { boxOfPositions, footprintOfBox, type Box } from '../../raster/footprint.ts';
import { invalid } from '../web/sandbox-error.ts';
import { compare, Instant, isOneOf, operand, type Holds, type Operand } from './cql2-values.ts';
import { likeMatcher } from './like.ts';
import { comparisonOf, type PropertyCondition } from './property-condition.ts';
import { SearchArea } from './search-area.ts';
import { Shape } from './shape.ts';
import { numberOf, truthOf, truths, type Truth } from './three-valued.ts';

/** One item, as a filter looks at it. */
export interface FilterSubject {
  /** Undefined or null where the item has no such property. */
  property(name: string): unknown;
  footprint(): Geometry;
  /** Of the footprint; west greater than east across the antimeridian. */
  box(): Box;
}

/** Three-valued, as in SQL: null is unknown, which is not a match. */
export type Filter =
  | { readonly op: 'and' | 'or'; readonly parts: readonly Filter[] }
  | { readonly op: 'not'; readonly part: Filter }
  /** What a property alone decides. */
  | { readonly op: 'condition'; readonly condition: PropertyCondition }
  | { readonly op: 'test'; readonly test: (item: FilterSubject) => Truth };

/** What a filter says of one item. */
export function holdsFor(filter: Filter, item: FilterSubject): Truth {
  switch (filter.op) {
    case 'and':
    case 'or': {
      const [decided, join] = filter.op === 'and' ? [truths.no, Math.min] : [truths.yes, Math.max];
      let result: number = truths.yes - decided;
      for (const part of filter.parts) if (result !== decided) result = join(result, numberOf(holdsFor(part, item)));
      return truthOf(result);
    }
    case 'not':
      return truthOf(truths.yes - numberOf(holdsFor(filter.part, item)));
    case 'condition':
      return filter.condition.test(operand(item.property(filter.condition.property)));
    case 'test':
      return filter.test(item);
  }
}

/** A value of the filter itself, read once, or one of each item. */
type Value = { readonly constant: Operand } | PropertyValue;

interface PropertyValue {
  readonly property: string;
  readonly of: (item: FilterSubject) => Operand;
}

/** What a filter may hold: one that costs more is refused before it is run. */
type Counted = 'filterOperators' | 'filterLiterals' | 'propertyReferences' | 'patternCharacters' | 'geometryPositions';

/** A comparison of two geometries of many positions takes a tenth of a second. */
const costOfShapes = 1e6;

class Parse {
  /** Names of the properties that are looked at. */
  readonly properties = new Set<string>();
  #shapes = 0;
  #counts: Record<Counted, number> = {
    filterOperators: 0,
    filterLiterals: 0,
    propertyReferences: 0,
    patternCharacters: 0,
    geometryPositions: 0,
  };

  get cost(): number {
    return this.#counts.propertyReferences + costOfShapes * this.#shapes;
  }

  /** Counts a comparison of geometries. */
  countShape(): void {
    this.#shapes += 1;
  }

  count(what: Counted, by = 1): void {
    const most = what === 'geometryPositions' ? limits.geometryPositions : limits.search[what];
    this.#counts[what] += by;
    if (this.#counts[what] > most) refuse('filter', `must have at most ${most} ${words[what]}`);
  }
}

const words: Readonly<Record<Counted, string>> = {
  filterOperators: 'operators',
  filterLiterals: 'values',
  propertyReferences: 'references to properties',
  patternCharacters: 'characters in its patterns',
  geometryPositions: 'positions in its geometries',
};

/** A filter that was read, and the properties that it looks at. */
export interface ParsedFilter {
  readonly filter: Filter;
  readonly properties: readonly string[];
  /** What deciding one item costs, about: a comparison of a property is 1. */
  readonly cost: number;
}

const comparisons: Readonly<Record<string, Holds>> = {
  '=': (order) => order === 0,
  '<>': (order) => order !== 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};
const operators = [
  'and',
  'or',
  'not',
  ...Object.keys(comparisons),
  'between',
  'in',
  'like',
  'isNull',
  's_intersects',
  't_intersects',
];

function refuse(path: string, message: string): never {
  throw invalid([{ path, message }]);
}

/** Reads a CQL2 filter in its JSON encoding (OGC 21-065r2). Throws 400 with the path of what is wrong. */
export function parseFilter(json: unknown): ParsedFilter {
  const parse = new Parse();
  const filter = parseExpression(json, 'filter', parse);
  return { filter, properties: [...parse.properties], cost: parse.cost };
}

function parseExpression(json: unknown, path: string, parse: Parse): Filter {
  if (typeof json === 'boolean') {
    parse.count('filterLiterals');
    return always(json);
  }
  if (!isObject(json) || typeof json['op'] !== 'string')
    return refuse(path, 'must be a CQL2-JSON expression {"op", "args"}');
  const { op, args } = json;
  if (!operators.includes(op)) return refuse(`${path}.op`, `must be one of ${operators.join(', ')}`);
  if (!Array.isArray(args)) return refuse(`${path}.args`, 'must be an array');
  parse.count('filterOperators');
  const at = (i: number) => `${path}.args.${i}`;
  const requireArgs = (count: number) => args.length === count || refuse(`${path}.args`, `must be ${count} for ${op}`);

  if (op === 'and' || op === 'or') {
    if (args.length < 2) return refuse(`${path}.args`, `must be at least 2 for ${op}`);
    return { op, parts: args.map((arg, i) => parseExpression(arg, at(i), parse)) };
  }
  if (op === 'not') {
    requireArgs(1);
    return { op, part: parseExpression(args[0], at(0), parse) };
  }
  if (op === 'isNull') {
    requireArgs(1);
    return ofOne(parseValue(args[0], at(0), parse), ({ value }) => (value ?? null) === null);
  }
  if (op === 's_intersects') {
    requireArgs(2);
    return parseSpatial(args, at, parse);
  }
  if (op === 't_intersects') {
    requireArgs(2);
    const [a, b] = [parseTemporal(args[0], at(0), parse), parseTemporal(args[1], at(1), parse)];
    if ('property' in a && 'constant' in b) return overlapFilter(a, b.constant);
    if ('constant' in a && 'property' in b) return overlapFilter(b, a.constant);
    return { op: 'test', test: (item) => overlap(intervalOf(a, item), intervalOf(b, item)) };
  }
  if (op === 'between') {
    requireArgs(3);
    const [value, low, high] = args.map((arg, i) => parseValue(arg, at(i), parse)) as [Value, Value, Value];
    const isFrom = comparisonFilter(value, low, (order) => order >= 0);
    return { op: 'and', parts: [isFrom, comparisonFilter(value, high, (order) => order <= 0)] };
  }
  if (op === 'in') {
    requireArgs(2);
    const [value, list] = [parseValue(args[0], at(0), parse), args[1] as unknown];
    if (!Array.isArray(list)) return refuse(at(1), 'must be an array of values');
    return inFilter(
      value,
      list.map((one, i) => parseValue(one, `${at(1)}.${i}`, parse)),
    );
  }
  if (op === 'like') {
    requireArgs(2);
    const [value, pattern] = [parseValue(args[0], at(0), parse), args[1] as unknown];
    if (typeof pattern !== 'string')
      return refuse(at(1), 'must be a pattern: a string in which % stands for any characters and _ for one');
    parse.count('patternCharacters', pattern.length);
    const matches = likeMatcher(pattern);
    return ofOne(value, ({ value: text }) => (typeof text === 'string' ? matches(text) : null));
  }
  requireArgs(2);
  const [a, b] = [parseValue(args[0], at(0), parse), parseValue(args[1], at(1), parse)];
  return comparisonFilter(a, b, comparisons[op] as Holds);
}

function always(truth: Truth): Filter {
  return { op: 'test', test: () => truth };
}

function ofOne(value: Value, test: PropertyCondition['test']): Filter {
  return 'of' in value
    ? { op: 'condition', condition: { property: value.property, test } }
    : always(test(value.constant));
}

function comparisonFilter(a: Value, b: Value, holds: Holds): Filter {
  if ('of' in a && 'constant' in b) return { op: 'condition', condition: comparisonOf(a.property, b.constant, holds) };
  if ('constant' in a && 'of' in b) return comparisonFilter(b, a, (order) => holds(-order));
  const [x, y] = [valueOf(a), valueOf(b)];
  return { op: 'test', test: (item) => compare(x(item), y(item), holds) };
}

/** The geometry that every match must intersect, where the filter says one at its top: the index looks there only. */
export function spatialHint(json: unknown): Box | null {
  if (!isObject(json) || !Array.isArray(json['args'])) return null;
  const args: unknown[] = json['args'];
  if (json['op'] === 'and') return args.map(spatialHint).find((hint) => hint !== null) ?? null;
  if (json['op'] !== 's_intersects') return null;
  const literal = args.find((arg) => !isProperty(arg));
  return literal === undefined || args.every((arg) => !isProperty(arg))
    ? null
    : boxOfPositions(positionsOf(parseGeometry(literal, 'filter')));
}

/** A property's name, with or without `properties.`. */
export function propertyName(name: string): string {
  return name.replace(/^properties\./, '');
}

function parseValue(json: unknown, path: string, parse: Parse): Value {
  if (json === null || ['string', 'number', 'boolean'].includes(typeof json)) {
    parse.count('filterLiterals');
    return { constant: operand(json) };
  }
  if (isProperty(json)) {
    const name = propertyName(json.property);
    if (name === 'geometry')
      return refuse(`${path}.property`, 'must not be geometry: every item has one, and s_intersects compares it');
    parse.count('propertyReferences');
    return propertyValue(name, parse);
  }
  if (isObject(json) && ('timestamp' in json || 'date' in json)) {
    parse.count('filterLiterals');
    return { constant: operand(parseTime(json, path)) };
  }
  return refuse(path, 'must be a string, number, boolean, {"property"}, {"timestamp"} or {"date"}');
}

function propertyValue(name: string, parse: Parse): PropertyValue {
  parse.properties.add(name);
  return { property: name, of: (item) => operand(item.property(name)) };
}

type ValueOf = (item: FilterSubject) => Operand;

function valueOf(value: Value): ValueOf {
  if ('of' in value) return value.of;
  const { constant } = value;
  return () => constant;
}

/** A short list is so many comparisons, which need not look at the values; a long one is looked up. */
const shortList = 8;

function inFilter(value: Value, list: readonly Value[]): Filter {
  const isOfConstants = 'of' in value && list.every((one) => 'constant' in one);
  if (!isOfConstants) return { op: 'test', test: isOneOf(valueOf(value), list) };
  if (list.length > 0 && list.length <= shortList)
    return { op: 'or', parts: list.map((one) => comparisonFilter(value, one, (order) => order === 0)) };
  return ofOne(
    value,
    isOneOf<Operand>((one) => one, list),
  );
}

function parseTime(json: Readonly<Record<string, unknown>>, path: string): Instant {
  const [key, text] = 'timestamp' in json ? ['timestamp', json['timestamp']] : ['date', json['date']];
  const ms = typeof text === 'string' ? parseInstant(key === 'date' ? `${text}T00:00:00Z` : text) : null;
  return ms === null
    ? refuse(`${path}.${key}`, key === 'date' ? 'must be a date such as 2024-01-31' : 'must be an RFC 3339 timestamp')
    : new Instant(ms);
}

/** An interval of the filter itself, or the moment that a property of an item is. */
type Temporal = { readonly constant: Interval } | PropertyValue;

function parseTemporal(json: unknown, path: string, parse: Parse): Temporal {
  if (isProperty(json)) return propertyValue(propertyName(json.property), parse);
  if (isObject(json) && Array.isArray(json['interval']) && json['interval'].length === 2) {
    const ends = (json['interval'] as unknown[]).map((end, i) => parseEnd(end, i === 1, `${path}.interval.${i}`));
    const interval = { startMs: ends[0] ?? -Infinity, endMs: ends[1] ?? Infinity };
    if (interval.startMs > interval.endMs) return refuse(`${path}.interval`, 'must start before it ends');
    return { constant: interval };
  }
  if (isObject(json) && ('timestamp' in json || 'date' in json)) {
    const { ms } = parseTime(json, path);
    return { constant: { startMs: ms, endMs: 'date' in json ? ms + 86_400_000 - 1 : ms } };
  }
  return refuse(path, 'must be {"property"}, {"timestamp"}, {"date"} or {"interval": [start, end]}');
}

/** A date is its first instant at the start of an interval, and its last at the end. */
function parseEnd(end: unknown, isLast: boolean, path: string): number | null {
  if (end === '..' || end === '') return null;
  const dayMs = isLast ? 86_400_000 - 1 : 0;
  if (isObject(end)) return parseTime(end, path).ms + ('timestamp' in end ? 0 : dayMs);
  const instant = typeof end === 'string' ? parseInstant(end) : null;
  if (instant !== null) return instant;
  const day = typeof end === 'string' ? parseInstant(`${end}T00:00:00Z`) : null;
  return day === null ? refuse(path, 'must be an RFC 3339 timestamp, a date or ..') : day + dayMs;
}

function overlapFilter(property: PropertyValue, interval: Interval): Filter {
  return ofOne(property, (value) => overlap(momentOf(value), interval));
}

function intervalOf(temporal: Temporal, item: FilterSubject): Interval | null {
  return 'constant' in temporal ? temporal.constant : momentOf(temporal.of(item));
}

function momentOf({ ms }: Operand): Interval | null {
  return ms === null ? null : { startMs: ms, endMs: ms };
}

function overlap(a: Interval | null, b: Interval | null): boolean | null {
  return a === null || b === null ? null : a.startMs <= b.endMs && b.startMs <= a.endMs;
}

function parseSpatial(args: readonly unknown[], at: (i: number) => string, parse: Parse): Filter {
  // Null: the item's own footprint.
  const [a = null, b = null] = args.map((arg, i) => {
    if (!isProperty(arg)) {
      const geometry = parseGeometry(arg, at(i));
      parse.count('geometryPositions', positionsOf(geometry).length);
      return geometry;
    }
    return propertyName(arg.property) === 'geometry'
      ? null
      : refuse(`${at(i)}.property`, 'must be geometry: items have no other');
  });
  const literal = a ?? b;
  if (literal === null) return always(true);
  if (a !== null && b !== null) {
    return always(new Shape(a).meets(new Shape(b)));
  }
  parse.countShape();
  const area = new SearchArea(literal);
  return { op: 'test', test: (item) => area.meets(item.box(), () => item.footprint()) };
}

function parseGeometry(json: unknown, path: string): Geometry {
  if (isObject(json) && 'bbox' in json) {
    const read = bboxSchema.safeParse(json['bbox']);
    return read.success
      ? footprintOfBox(read.data)
      : refuse(`${path}.bbox`, read.error.issues[0]?.message ?? 'must be a bbox');
  }
  const read = geojsonGeometry.safeParse(json);
  return read.success ? read.data : refuse(path, read.error.issues[0]?.message ?? 'must be a GeoJSON geometry');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isProperty(value: unknown): value is { property: string } {
  return isObject(value) && typeof value['property'] === 'string';
}
