import type { Content, SourceType } from '../../contract/index.ts';
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
  /** True if a search applies `ids`. */
  takesIds?: boolean;
  /** True if a search applies `filter`. */
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

/** Throws `NotObserved` if a value is missing, which the exchange `from` should have given. */
export function needed<T>(value: T | undefined, what: string, at: Conversation, from: string): T {
  if (value !== undefined) return value;
  const reason = failureOf(at, from);
  throw new NotObserved(`no ${what} was found${reason === null ? '' : `, because ${reason}`}`);
}

/** Throws `NotObserved` if an exchange failed, on which others depend. */
export function taken(at: Conversation, name: string): void {
  const reason = failureOf(at, name);
  if (reason !== null) throw new NotObserved(reason);
}

/** Describes the failure of an exchange. Null if it succeeded, or was not made. */
function failureOf(at: Conversation, name: string): string | null {
  const exchange = at.exchanges.findLast((made) => made.name === name && made.method !== '');
  if (!exchange) return null;
  if (!/^2/.test(exchange.facts['status'] ?? '')) return `${name} was answered ${exchange.facts['status']}`;
  return exchange.unreadable === null ? null : `the profile cannot read the answer of ${name}`;
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

export const refusal = { expect: 'refusal' } as const;

/** Begins an upload. Returns its identifiers; undefined if the platform refuses it or the answer cannot be read. */
export async function beginUpload(
  at: Conversation,
  name: string,
  upload: { readonly operationId: string; readonly fileName: string; readonly sourceType?: SourceType },
  options?: typeof refusal,
): Promise<{ readonly uploadId: string; readonly key: string } | undefined> {
  const answer = await at.call(name, 'initiateUpload', { token: await at.token(), upload }, options);
  const { uploadId, key } = readable(() => at.target.profile.calls.initiateUpload.decode(jsonOf(answer)));
  return uploadId === undefined || key === undefined ? undefined : { uploadId, key };
}
