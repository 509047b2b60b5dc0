import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import { KitError, wireCalls, type WireCallName } from '../../contract/index.ts';
import { codeOf } from '../../files/index.ts';
import { leavesOf } from './leaves.ts';

const har = z.object({
  log: z.object({
    entries: z.array(
      z.object({
        request: z.object({
          method: z.string(),
          url: z.string(),
          postData: z
            .object({
              text: z.string().optional(),
              params: z.array(z.object({ name: z.string(), value: z.string().optional() })).optional(),
            })
            .nullish(),
        }),
      }),
    ),
  }),
});

/** Requests that another client of the platform made. */
export interface Recording {
  /** Places that a call may have, as `METHOD /path`, with the call's own fields for the values in them. */
  placesOf(name: WireCallName): string[];
  /** The value that a field has in every request; undefined if it has none, or different ones. */
  constantOf(field: string): string | undefined;
}

export const noRecording: Recording = { placesOf: () => [], constantOf: () => undefined };

/** Reads the requests to a platform from a HAR file, as a browser exports it. Throws `KitError`. */
export async function readRecording(file: string, platformUrl: string): Promise<Recording> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new KitError('bad_arguments', `--from ${file} cannot be read (${codeOf(error) ?? 'it is too large'})`);
  });
  const read = har.safeParse(jsonOf(text.replace(/^\ufeff/, '')));
  if (!read.success)
    throw new KitError(
      'bad_arguments',
      `--from ${file} must be a HAR file: export it in the network panel of a browser`,
    );
  const base = new URL(platformUrl).href.replace(/\/+$/, '');
  const requests = read.data.log.entries
    .map(({ request }) => request)
    .filter(({ method, url }) => isOf(base, url) && methods.includes(method) && !isPage(url));
  if (requests.length === 0)
    throw new KitError(
      'bad_arguments',
      `--from ${file} has no request to ${platformUrl}: record the platform that --platform names`,
    );
  const places = requests.map(({ method, url }) => ({
    method,
    path: new URL(url).href.slice(base.length).split(/[?#]/)[0] ?? '',
  }));
  const token = tokenIn(places.map(({ path }) => path));
  const bodies = requests.map(({ postData }) => fieldsOf(postData));
  return {
    placesOf(name) {
      const { method: assumed, request } = wireCalls[name];
      const isSameKind = (method: string) => (method === 'GET') === (assumed === 'GET');
      const taken = Object.entries(request).flatMap(([field, place]) =>
        field !== 'token' && place !== 'header' ? [field] : [],
      );
      const named = places
        .filter(({ method }) => isSameKind(method))
        .map(({ method, path }) => withNames(path, token, taken) && `${method} ${withNames(path, token, taken)}`);
      return [...new Set(named.filter((place) => place !== null))];
    },
    constantOf(field) {
      if (/pass|secret|token|key|auth|credential/i.test(field)) return undefined;
      const values = new Set(bodies.flatMap((body) => (body.has(field) ? [body.get(field)] : [])));
      const [only] = values;
      return values.size === 1 ? only : undefined;
    },
  };
}

const methods: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH'];
const isOf = (base: string, url: string) => URL.canParse(url) && new URL(url).href.startsWith(`${base}/`);
const isPage = (url: string) =>
  /\.(?:css|gif|html?|ico|jpe?g|js|map|png|svg|webp|woff2?)$/i.test(new URL(url).pathname);

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Values by dotted name. */
function fieldsOf(
  data:
    | {
        readonly text?: string | undefined;
        readonly params?: readonly { name: string; value?: string | undefined }[] | undefined;
      }
    | null
    | undefined,
) {
  const inForm = (data?.params ?? []).map(({ name, value }): [string, string] => [name, value ?? '']);
  const inJson = leavesOf(jsonOf(data?.text ?? '')).map(({ path, value }): [string, string] => [
    path,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return new Map([...inForm, ...inJson]);
}

const isLong = (segment: string) => segment.length >= 16 && /\d/.test(segment);
const isValue = (segment: string) => isLong(segment) || /\d/.test(segment.replace(/^v\d+$/, ''));

/** The longest segment that the most paths have: the identity token of the recorded launch. */
function tokenIn(paths: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const path of paths)
    for (const segment of new Set(path.split('/').filter(isLong))) counts.set(segment, (counts.get(segment) ?? 0) + 1);
  const [most] = [...counts].toSorted(([a, m], [b, n]) => n - m || b.length - a.length);
  return most?.[0] ?? null;
}

/** A path with `:name` for its values, in the order of the fields; null if it has more values than the call has fields. */
function withNames(path: string, token: string | null, fields: readonly string[]): string | null {
  const left = [...fields];
  const named = path.split('/').map((segment) => {
    if (segment === token) return ':token';
    if (!isValue(segment)) return segment;
    const field = left.shift();
    return field === undefined ? null : `:${field}`;
  });
  return named.includes(null) ? null : named.join('/');
}
