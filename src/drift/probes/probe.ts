import type { Content } from '../../contract/index.ts';
import { jsonOf, type RawAnswer } from '../facts.ts';
import { NotObserved, type Conversation, type Level } from '../target.ts';

/** Place in the source that defines the probed behaviour: a file below `src` and a name in it. */
export interface Place {
  readonly file: string;
  readonly symbol: string;
  /** Section of the specification. */
  readonly section: string;
}

/** One thing to find out. What it sends is the same on every platform. */
export interface Probe {
  readonly id: string;
  readonly level: Level;
  /** Place for facts that belong to no call of the wire profile. */
  readonly place: Place;
  run(at: Conversation, found: Findings): Promise<void>;
}

/** Results of earlier probes. */
export interface Findings {
  catalogId?: string;
  collectionId?: string;
  item?: { readonly id: string; readonly title: string; readonly data: string; readonly preview: string };
  /** A search heeds `ids`, and `filter`. */
  takesIds?: boolean;
  takesFilter?: boolean;
  operationId?: string;
  isApproved?: boolean;
  upload?: { readonly uploadId: string; readonly key: string };
  secondUpload?: { readonly uploadId: string; readonly key: string };
  deliveredId?: string;
  fileId?: string;
}

export const nobody = 'drift-nobody-knows-this-0000000000';
/** Content of a delivered file: one point. */
export const delivered = Buffer.from(
  JSON.stringify({
    type: 'FeatureCollection',
    features: [{ type: 'Feature', properties: { of: 'drift' }, geometry: { type: 'Point', coordinates: [10, 50] } }],
  }),
);
export const content = (bytes: Buffer): Content => ({
  sizeBytes: bytes.length,
  // oxlint-disable-next-line typescript/require-await -- `Content` opens an async iterable
  async *open() {
    yield bytes;
  },
});

export const record = (value: unknown): Record<string, unknown> =>
  // An object has fields by name.
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const bodyOf = (answer: RawAnswer) => record(jsonOf(answer));
export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** Throws `NotObserved` if an earlier exchange did not give a value. */
export function needed<T>(value: T | undefined, what: string, at: Conversation, from: string): T {
  if (value !== undefined) return value;
  throw new NotObserved(`no ${what} was found${whyNot(at, from)}`);
}

/** Throws `NotObserved` if the platform refused a request that others presuppose. */
export function taken(at: Conversation, ...names: string[]): void {
  const refused = names.find((name) => whyNot(at, name) !== '');
  if (refused !== undefined) throw new NotObserved(whyNot(at, refused).slice(', because '.length));
}

function whyNot(at: Conversation, name: string): string {
  const exchange = at.exchanges.findLast((made) => made.name === name && made.method !== '');
  if (!exchange) return '';
  if (!/^2/.test(exchange.facts['status'] ?? '')) return `, because ${name} was answered ${exchange.facts['status']}`;
  return exchange.unreadable === null ? '' : `, because the profile cannot read the answer of ${name}`;
}

export const isOk = ({ status }: RawAnswer): boolean => status >= 200 && status <= 299;

export const json = (value: unknown) => ({
  headers: { 'content-type': 'application/json', accept: 'application/geo+json' },
  body: typeof value === 'string' ? value : JSON.stringify(value),
});

export function probe(id: string, level: Level, place: Place, run: Probe['run']): Probe {
  return { id, level, place, run };
}

/** Reads a response. Returns an empty object if `read` throws. */
export function readable<T extends object>(read: () => T): Partial<T> {
  try {
    return read();
  } catch {
    return {};
  }
}

export const launchPlace: Place = {
  file: 'contract/calls/create-operation.ts',
  symbol: 'createOperation',
  section: '4.8',
};
export const refusal = { expect: 'refusal' } as const;
