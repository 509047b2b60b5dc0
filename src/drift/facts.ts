import {
  errorCodes,
  fileStatuses,
  inferenceStatuses,
  inferenceTypes,
  isShallow,
  operationStatus,
  sourceTypes,
} from '../contract/index.ts';

/** Observed facts of a response by path: `status`, `header.content-type`, `body.features[].id`. Facts are shapes, not values. */
export type Facts = Readonly<Record<string, string>>;

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Headers that a client may rely on, by what they say; of others neither the value nor the presence counts. */
const toldHeaders: Readonly<Record<string, (value: string) => string>> = {
  'content-type': (value) => (value.toLowerCase().split(';')[0] ?? '').trim(),
  'x-request-id': () => 'some',
  allow: (value) =>
    value
      .split(',')
      .map((part) => part.trim())
      .sort()
      .join(', '),
  location: () => 'some',
  'retry-after': (value) => (/^\d+$/.test(value) ? 'seconds' : 'a date'),
  'content-disposition': (value) => (value.split(';')[0] ?? '').trim().toLowerCase(),
  'content-range': (value) => value.replace(/\d+/g, 'n'),
  'accept-ranges': (value) => value,
  'www-authenticate': (value) => value.split(' ')[0] ?? '',
  'set-cookie': () => 'some',
};

const words: ReadonlySet<string> = new Set<string>([
  ...errorCodes,
  ...fileStatuses,
  ...inferenceStatuses,
  ...inferenceTypes,
  ...operationStatus.options,
  ...sourceTypes,
  'Catalog',
  'Collection',
  'Feature',
  'FeatureCollection',
  'Polygon',
  'MultiPolygon',
  'RASTER',
  'VECTOR',
  'DEFAULT',
]);

/** A longer text, or one with digits, may be a token. */
const shortWord = /^[A-Za-z][A-Za-z _-]{0,23}$/;
/** Fields whose texts are words of a list: what stands there must be one of them. */
const wordFields = /(^|\.)(status|type|code|source_type|platform:source_type|layer_type)$/;

/** Facts of an answer. Fields of arrays count together. `quotesWords`: an unknown word of a list is quoted (default: true). */
export function factsOf(answer: RawAnswer, { quotesWords = true } = {}): Facts {
  const facts: Record<string, string> = { status: String(answer.status) };
  for (const [name, say] of Object.entries(toldHeaders)) {
    const value = answer.headers[name];
    if (value !== undefined) facts[`header.${name}`] = say(value);
  }
  const json = jsonOf(answer);
  if (json !== undefined) {
    const kinds = new Map<string, Set<string>>();
    walk(json, 'body', kinds);
    for (const [path, found] of kinds)
      facts[path] = [...found]
        .map((kind) => (quotesWords || !kind.startsWith('the word ') ? kind : 'another word'))
        .sort()
        .join('|');
  } else if (answer.body.length === 0) facts['body'] = 'empty';
  else
    facts['body'] = /^(https?):\/\/\S+$/.test(answer.body.subarray(0, 4096).toString('utf8').trim()) ? 'url' : 'bytes';
  return facts;
}

/** Undefined where the body is none. */
export function jsonOf({ headers, body }: RawAnswer): unknown {
  if (!/json/.test(headers['content-type'] ?? '') && !/^\s*[[{]/.test(body.subarray(0, 64).toString('utf8')))
    return undefined;
  try {
    const json: unknown = JSON.parse(body.toString('utf8'));
    return isShallow(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

/** Item properties that the specification names (2.3) or the app looks for. Other properties are the platform's own. */
const itemProperties: ReadonlySet<string> = new Set([
  'datetime',
  'name',
  'description',
  'platform:layer_type',
  'layer_type',
  'platform:ingestion_date',
  'source_type',
  'platform:source',
  'platform:source_type',
  'platform:source_sub_type',
  'eo:bands',
  'bands',
  'proj:shape',
]);

const maxDepth = 8;

function walk(value: unknown, path: string, kinds: Map<string, Set<string>>, depth = 0): void {
  const found = kinds.get(path) ?? new Set<string>();
  kinds.set(path, found.add(kindOf(value, path)));
  if (depth >= maxDepth || value === null || typeof value !== 'object') return;
  if (Array.isArray(value)) {
    // A footprint's positions say no more than the first one.
    for (const inner of value.slice(0, 50)) walk(inner, `${path}[]`, kinds, depth + 1);
    return;
  }
  const isItem = /(features\[\]|^body)\.properties$/.test(path);
  for (const [name, inner] of Object.entries(value)) {
    if (isItem && !itemProperties.has(name)) continue;
    // The bands of a scene are called as they please.
    const isBand = /\.assets$/.test(path) && !['data', 'rendered_preview', 'raster', 'thumbnail'].includes(name);
    if (!isBand) walk(inner, `${path}.${name}`, kinds, depth + 1);
  }
}

function kindOf(value: unknown, path: string): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number')
    return Number.isInteger(value) ? (value > 1e12 && value < 1e13 ? 'epoch-ms' : 'integer') : 'number';
  if (typeof value !== 'string') return typeof value;
  if (wordFields.test(path) && !/link|asset/.test(path) && !/^[a-z]+\/[\w.+-]+/.test(value))
    return words.has(value) ? 'word' : shortWord.test(value) ? `the word ${value}` : 'another word';
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return 'instant';
  if (/^\d{4}-\d\d-\d\d([T ]|$)/.test(value)) return 'another time';
  if (/^https?:\/\//.test(value)) return 'url';
  return 'text';
}

/** True where every kind of `found` is one that `wanted` allows: a whole number is a number, and any text is a text. */
export function isWithin(wanted: string, found: string): boolean {
  const allowed = new Set(wanted.split('|'));
  return found
    .split('|')
    .every(
      (kind) =>
        allowed.has(kind) ||
        (kind === 'integer' && allowed.has('number')) ||
        (['instant', 'url', 'another time', 'word'].includes(kind) && allowed.has('text')),
    );
}

/** Reason why a profile cannot read an answer, from the error of its decoder. */
export function unreadableReason(error: unknown): string {
  // Errors of zod have issues, others do not.
  const issues = (error as { issues?: readonly { path: readonly PropertyKey[]; message: string }[] }).issues;
  return issues
    ? issues.map(({ path, message }) => `${path.map(String).join('.') || 'the body'}: ${message}`).join('; ')
    : error instanceof Error
      ? error.message
      : 'it cannot be read';
}
