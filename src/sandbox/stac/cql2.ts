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
import type { SqlOfSearch } from './search-query.ts';
import { instantOf, isText, orderOf, searchValue, type SearchValue } from './search-values.ts';
import { isRecord } from '../../files/index.ts';

/** Parts of a filter that have a limit. A filter over a limit is rejected before it runs. */
type Counted = 'filterOperators' | 'filterLiterals' | 'propertyReferences' | 'patternCharacters' | 'geometryPositions';

const words: Readonly<Record<Counted, string>> = {
  filterOperators: 'operators',
  filterLiterals: 'values',
  propertyReferences: 'references to properties',
  patternCharacters: 'characters in its patterns',
  geometryPositions: 'positions in its geometries',
};

const comparisons = ['=', '<>', '<', '<=', '>', '>='] as const;
type Comparison = (typeof comparisons)[number];
const negated: Readonly<Record<Comparison, Comparison>> = {
  '=': '<>',
  '<>': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};
const mirrored: Readonly<Record<Comparison, Comparison>> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};
const holds: Readonly<Record<Comparison, (order: number) => boolean>> = {
  '=': (order) => order === 0,
  '<>': (order) => order !== 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};
const isComparison = (op: string): op is Comparison => comparisons.some((comparison) => comparison === op);

const operators = [
  'and',
  'or',
  'not',
  ...comparisons,
  'between',
  'in',
  'like',
  'isNull',
  's_intersects',
  't_intersects',
];

/** A timestamp or date in the filter. The class distinguishes it from a number. */
class Instant {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

/** A value in the filter, or a property of each item. */
type Value = { readonly literal: SearchValue | Instant } | { readonly property: string };

function refuse(path: string, message: string): never {
  throw invalid([{ path, message }]);
}

/** SQL of truth values. */
const always = (truth: boolean | null) => (truth === true ? '1' : '0');

/**
 * Joins conditions as a tree, because SQLite limits the depth of an expression. Each step joins the two shortest, so the depth
 * of nested joins is little more than the number of their levels.
 */
function joined(parts: readonly string[], by: 'and' | 'or'): string {
  const byLength = (a: string, b: string) => a.length - b.length;
  const trees = parts.toSorted(byLength);
  for (let i = 1; i < trees.length; i += 2) {
    const tree = `(${trees[i - 1]} ${by} ${trees[i]})`;
    const place = trees.findIndex((otherTree, at) => at > i && byLength(otherTree, tree) > 0);
    trees.splice(place < 0 ? trees.length : place, 0, tree);
  }
  return trees.at(-1) ?? always(by === 'and');
}

/**
 * Converts a CQL2 filter from JSON (OGC 21-065r2) to SQL. CQL2 has three truth values: a comparison with a missing value, or of
 * two kinds, is unknown, and so is its negation. Therefore the conversion negates comparisons instead of whole conditions, and an
 * unknown comparison is false.
 */
export class Cql2 {
  /** Names of the properties in the filter. */
  readonly properties = new Set<string>();
  readonly #sql: SqlOfSearch;
  #counts: Record<Counted, number> = {
    filterOperators: 0,
    filterLiterals: 0,
    propertyReferences: 0,
    patternCharacters: 0,
    geometryPositions: 0,
  };

  constructor(sql: SqlOfSearch) {
    this.#sql = sql;
  }

  /** SQL that is true for matches. Throws 400 with the path of the fault. */
  condition(json: unknown): string {
    return this.#expression(json, 'filter', false);
  }

  #count(what: Counted, by = 1): void {
    const most = what === 'geometryPositions' ? limits.geometryPositions : limits.search[what];
    this.#counts[what] += by;
    if (this.#counts[what] > most) refuse('filter', `must have at most ${most} ${words[what]}`);
  }

  /** `isNot`: an odd number of `not` encloses the expression. */
  #expression(json: unknown, path: string, isNot: boolean): string {
    if (typeof json === 'boolean') {
      this.#count('filterLiterals');
      return always(json !== isNot);
    }
    if (!isRecord(json) || typeof json['op'] !== 'string')
      return refuse(path, 'must be a CQL2-JSON expression {"op", "args"}');
    const { op, args } = json;
    if (!operators.includes(op)) return refuse(`${path}.op`, `must be one of ${operators.join(', ')}`);
    if (!Array.isArray(args)) return refuse(`${path}.args`, 'must be an array');
    this.#count('filterOperators');
    const at = (i: number) => `${path}.args.${i}`;
    const [least, most] =
      op === 'and' || op === 'or'
        ? [2, Infinity]
        : op === 'between'
          ? [3, 3]
          : op === 'not' || op === 'isNull'
            ? [1, 1]
            : [2, 2];
    if (args.length < least || args.length > most)
      return refuse(`${path}.args`, `must be ${most === Infinity ? 'at least ' : ''}${least} for ${op}`);
    const value = (i: number) => this.#value(args[i], at(i));
    switch (op) {
      case 'and':
      case 'or':
        return joined(
          args.map((arg, i) => this.#expression(arg, at(i), isNot)),
          (op === 'and') === isNot ? 'or' : 'and',
        );
      case 'not':
        return this.#expression(args[0], at(0), !isNot);
      case 'isNull':
        return this.#isNull(value(0), isNot);
      case 'between': {
        const [middle, low, high] = [value(0), value(1), value(2)];
        const parts = [this.#compare('>=', middle, low, isNot), this.#compare('<=', middle, high, isNot)];
        return joined(parts, isNot ? 'or' : 'and');
      }
      case 'in': {
        const list: unknown = args[1];
        if (!Array.isArray(list)) return refuse(at(1), 'must be an array of values');
        const wanted = value(0);
        return this.#isIn(
          wanted,
          list.map((argument, i) => this.#value(argument, `${at(1)}.${i}`)),
          isNot,
        );
      }
      case 'like': {
        const wanted = value(0);
        return this.#isLike(wanted, args[1], at(1), isNot);
      }
      case 's_intersects':
        return this.#meets(args, at, isNot);
      case 't_intersects':
        return this.#overlaps(this.#temporal(args[0], at(0)), this.#temporal(args[1], at(1)), isNot);
      default:
        return isComparison(op) ? this.#compare(op, value(0), value(1), isNot) : always(null);
    }
  }

  #isNull(value: Value, isNot: boolean): string {
    if ('literal' in value) return always((value.literal === null) !== isNot);
    return `${this.#sql.property(value.property)} is ${isNot ? 'not ' : ''}null`;
  }

  #compare(op: Comparison, a: Value, b: Value, isNot = false): string {
    const wanted = isNot ? negated[op] : op;
    if ('literal' in a) {
      if ('property' in b) return this.#compare(mirrored[wanted], b, a);
      const order = orderOfLiterals(a.literal, b.literal);
      return always(order !== null && holds[wanted](order));
    }
    const own = this.#sql.property(a.property);
    if ('property' in b) return `order_of(${own}, ${this.#sql.property(b.property)}) ${wanted} 0`;
    const { literal } = b;
    const ms = instantOfLiteral(literal);
    if (ms !== null && (literal instanceof Instant || a.property === 'datetime'))
      return `${this.#sql.instant(a.property)} ${wanted} ${this.#sql.bind(ms)}`;
    if (literal === null || literal instanceof Instant) return always(null);
    if (ms !== null) return `order_of(${own}, ${this.#sql.bind(literal)}) ${wanted} 0`;
    return `(${own} ${wanted} ${this.#sql.bind(literal)} and ${isOfKind(own, kindOf(literal))})`;
  }

  #isIn(value: Value, list: readonly Value[], isNot: boolean): string {
    if (list.length === 0) return always(isNot);
    const literals = list.flatMap((operand) => ('literal' in operand ? [operand.literal] : []));
    const others = list.filter((operand) => 'property' in operand);
    const by = isNot ? 'and' : 'or';
    const comparisonsOfOthers = others.map((other) => this.#compare('=', value, other, isNot));
    if ('literal' in value)
      return joined(
        [...literals.map((literal) => this.#compare('=', value, { literal: literal }, isNot)), ...comparisonsOfOthers],
        by,
      );
    const own = this.#sql.property(value.property);
    const plain = literals.filter((literal) => literal !== null && !(literal instanceof Instant));
    const instants = literals.map(instantOfLiteral).filter((ms) => ms !== null);
    const isEqual = [
      ...(plain.length > 0 ? [this.#sql.isIn(own, plain)] : []),
      ...(instants.length > 0 ? [this.#sql.isIn(this.#sql.instant(value.property), instants)] : []),
    ];
    if (!isNot) return joined([...isEqual, ...comparisonsOfOthers], by);
    // The result is unknown if the value cannot be compared with a value of the list.
    const kinds = [...new Set(literals.map(kindOf))].map((kind) =>
      kind === 'instant'
        ? `${this.#sql.instant(value.property)} is not null`
        : kind === 'none'
          ? always(null)
          : isOfKind(own, kind),
    );
    return joined(
      [
        `${own} is not null`,
        ...kinds,
        ...isEqual.map((condition) => `(${condition}) is not true`),
        ...comparisonsOfOthers,
      ],
      by,
    );
  }

  #isLike(value: Value, pattern: unknown, path: string, isNot: boolean): string {
    if (typeof pattern !== 'string')
      return refuse(path, 'must be a pattern: a string in which % stands for any characters and _ for one');
    this.#count('patternCharacters', pattern.length);
    if ('literal' in value && value.literal instanceof Instant) return always(null);
    const text = 'literal' in value ? this.#sql.bind(value.literal) : this.#sql.property(value.property);
    return `${this.#sql.isLike(text, pattern)} = ${isNot ? 0 : 1}`;
  }

  #meets(args: readonly unknown[], at: (i: number) => string, isNot: boolean): string {
    // Null stands for the footprint of an item.
    const [a = null, b = null] = args.map((arg, i) => {
      if (!isProperty(arg)) {
        const geometry = parseGeometry(arg, at(i));
        this.#count('geometryPositions', positionsOf(geometry).length);
        return geometry;
      }
      return propertyName(arg.property) === 'geometry'
        ? null
        : refuse(`${at(i)}.property`, 'must be geometry: items have no other');
    });
    const literal = a ?? b;
    if (literal === null) return always(!isNot);
    const sql = a !== null && b !== null ? this.#sql.meetEachOther(a, b) : this.#sql.meets(literal);
    return `${sql} = ${isNot ? 0 : 1}`;
  }

  #overlaps(a: Temporal, b: Temporal, isNot: boolean): string {
    if ('interval' in a) {
      if ('property' in b) return this.#overlaps(b, a, isNot);
      return always((a.interval.startMs <= b.interval.endMs && b.interval.startMs <= a.interval.endMs) !== isNot);
    }
    const own = this.#sql.instant(a.property);
    if ('property' in b) return `${own} ${isNot ? '<>' : '='} ${this.#sql.instant(b.property)}`;
    const [start, end] = [this.#sql.bind(b.interval.startMs), this.#sql.bind(b.interval.endMs)];
    return `${own} ${isNot ? 'not ' : ''}between ${start} and ${end}`;
  }

  #named(property: string, path: string): string {
    const { fieldNameCharacters } = limits.search;
    if (property.length > fieldNameCharacters)
      return refuse(`${path}.property`, `must have at most ${fieldNameCharacters} characters`);
    this.properties.add(property);
    return property;
  }

  #value(json: unknown, path: string): Value {
    if (json === null || typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean') {
      this.#count('filterLiterals');
      return { literal: searchValue(json) };
    }
    if (isProperty(json)) {
      const name = propertyName(json.property);
      if (name === 'geometry')
        return refuse(`${path}.property`, 'must not be geometry: every item has one, and s_intersects compares it');
      this.#count('propertyReferences');
      return { property: this.#named(name, path) };
    }
    if (isRecord(json) && ('timestamp' in json || 'date' in json)) {
      this.#count('filterLiterals');
      return { literal: parseTime(json, path) };
    }
    return refuse(path, 'must be a string, number, boolean, {"property"}, {"timestamp"} or {"date"}');
  }

  #temporal(json: unknown, path: string): Temporal {
    if (isProperty(json)) return { property: this.#named(propertyName(json.property), path) };
    if (isRecord(json) && Array.isArray(json['interval']) && json['interval'].length === 2) {
      const ends = json['interval'].map((end: unknown, i) => parseEnd(end, i === 1, `${path}.interval.${i}`));
      const interval = { startMs: ends[0] ?? -Infinity, endMs: ends[1] ?? Infinity };
      if (interval.startMs > interval.endMs) return refuse(`${path}.interval`, 'must start before it ends');
      return { interval };
    }
    if (isRecord(json) && ('timestamp' in json || 'date' in json)) {
      const { ms } = parseTime(json, path);
      return { interval: { startMs: ms, endMs: 'date' in json ? ms + 86_400_000 - 1 : ms } };
    }
    return refuse(path, 'must be {"property"}, {"timestamp"}, {"date"} or {"interval": [start, end]}');
  }
}

/** An interval in the filter, or the time in a property. */
type Temporal = { readonly interval: Interval } | { readonly property: string };

type Kind = 'number' | 'text' | 'boolean' | 'instant' | 'none';

function kindOf(literal: SearchValue | Instant): Kind {
  if (literal === null) return 'none';
  if (literal instanceof Instant) return 'instant';
  return typeof literal === 'number' ? 'number' : isText(literal) ? 'text' : 'boolean';
}

/** SQL that is true for search values of one kind. */
function isOfKind(value: string, kind: Kind): string {
  switch (kind) {
    case 'number':
      return `${value} < ''`;
    case 'text':
      return `${value} >= 't' and ${value} < 'u'`;
    case 'boolean':
      return `${value} in ('utrue', 'ufalse')`;
    default:
      return always(null);
  }
}

const instantOfLiteral = (literal: SearchValue | Instant) =>
  literal instanceof Instant ? literal.ms : instantOf(literal);

function orderOfLiterals(a: SearchValue | Instant, b: SearchValue | Instant): number | null {
  const [x, y] = [instantOfLiteral(a), instantOfLiteral(b)];
  if (x !== null && y !== null) return x - y;
  return a instanceof Instant || b instanceof Instant ? null : orderOf(a, b);
}

/** Box of a geometry that every match must intersect, if the filter has one at its top. */
export function spatialHint(json: unknown): Box | null {
  if (!isRecord(json) || !Array.isArray(json['args'])) return null;
  const args: unknown[] = json['args'];
  if (json['op'] === 'and') return args.map(spatialHint).find((hint) => hint !== null) ?? null;
  if (json['op'] !== 's_intersects' || args.filter(isProperty).length !== 1) return null;
  const read = readGeometry(args.find((arg) => !isProperty(arg)));
  return 'geometry' in read ? boxOfPositions(positionsOf(read.geometry)) : null;
}

/** A property's name, with or without `properties.`. */
export function propertyName(name: string): string {
  return name.replace(/^properties\./, '');
}

function parseTime(json: Readonly<Record<string, unknown>>, path: string): Instant {
  const [key, text] = 'timestamp' in json ? ['timestamp', json['timestamp']] : ['date', json['date']];
  const ms = typeof text === 'string' ? parseInstant(key === 'date' ? `${text}T00:00:00Z` : text) : null;
  return ms === null
    ? refuse(`${path}.${key}`, key === 'date' ? 'must be a date such as 2024-01-31' : 'must be an RFC 3339 timestamp')
    : new Instant(ms);
}

/** At the start of an interval, a date means its first instant. At the end, it means its last instant. */
function parseEnd(end: unknown, isLast: boolean, path: string): number | null {
  if (end === '..' || end === '') return null;
  const dayMs = isLast ? 86_400_000 - 1 : 0;
  if (isRecord(end)) return parseTime(end, path).ms + ('timestamp' in end ? 0 : dayMs);
  const instant = typeof end === 'string' ? parseInstant(end) : null;
  if (instant !== null) return instant;
  const day = typeof end === 'string' ? parseInstant(`${end}T00:00:00Z`) : null;
  return day === null ? refuse(path, 'must be an RFC 3339 timestamp, a date or ..') : day + dayMs;
}

function parseGeometry(json: unknown, path: string): Geometry {
  const read = readGeometry(json);
  return 'geometry' in read ? read.geometry : refuse(`${path}${read.at}`, read.message);
}

function readGeometry(
  json: unknown,
): { readonly geometry: Geometry } | { readonly at: string; readonly message: string } {
  if (isRecord(json) && 'bbox' in json) {
    const read = bboxSchema.safeParse(json['bbox']);
    return read.success
      ? { geometry: footprintOfBox(read.data) }
      : { at: '.bbox', message: read.error.issues[0]?.message ?? 'must be a bbox' };
  }
  const read = geojsonGeometry.safeParse(json);
  return read.success
    ? { geometry: read.data }
    : { at: '', message: read.error.issues[0]?.message ?? 'must be a GeoJSON geometry' };
}

function isProperty(value: unknown): value is { property: string } {
  return isRecord(value) && typeof value['property'] === 'string';
}
