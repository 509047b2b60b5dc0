import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import validate from 'stac-node-validator';
import loader from 'stac-node-validator/src/loader/node.js';
import type { StacCatalog, StacCollection, StacItem, StacLink } from '../../src/contract/index.ts';
import { projectRoot } from './folders.ts';
import { apiKey, startSandbox, type Answer, type StartOptions, type TestSandbox } from './sandbox.ts';

export const key = { 'x-api-key': apiKey };

/** Published schemas that lie beside the project on the makers' machines; tests that use them skip, visibly, elsewhere. */
const schemas = join(projectRoot, '../shared/schemas');
/** Folder of extension schemas (`raster/v1.1.0/schema.json`, ...). */
const extensions = process.env['STAC_EXTENSIONS'] ?? join(schemas, 'ext');

/** True if the schemas of these extensions are here. */
export const hasExtensions = (...names: readonly string[]): boolean =>
  existsSync(join(schemas, 'stac')) && names.every((name) => existsSync(join(extensions, name)));

export interface ItemPage {
  readonly type: 'FeatureCollection';
  readonly features: StacItem[];
  readonly links: StacLink[];
  readonly numberMatched: number;
  readonly numberReturned: number;
  readonly limit?: number;
  readonly offset?: number;
  readonly sortby: { field: string; direction: string }[];
}

/** Faults of a STAC object, by stac-node-validator with the published schemas; empty if there are none. */
export async function faultsOf(object: unknown): Promise<unknown[]> {
  const report = await validate(object as object, {
    loader,
    schemas: join(schemas, 'stac'),
    schemaMap: {
      'https://stac-extensions.github.io/': `${extensions}/`,
      'https://geojson.org/': join(schemas, 'geojson/'),
      'https://proj.org/': `${extensions}/proj.org/`,
    },
  });
  if (report.valid && report.children.every((child) => child.valid)) return [];
  return [report.messages, report.results, report.children.map((child) => child.results)];
}

export async function get<T>(sandbox: TestSandbox, path: string): Promise<T> {
  const answer = await sandbox.request('GET', path.startsWith('http') ? path.slice(sandbox.url.length) : path, {
    headers: key,
  });
  if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
  return answer.body as unknown as T;
}

export const whole = {
  bbox: [-180, -90, 180, 90],
  collections: ['a', 'b', 'c'],
  datetime: '1900-01-01T00:00:00Z/2100-01-01T00:00:00Z',
};

/** A search that must work, as the spec wants it unless told otherwise. */
export async function search(sandbox: TestSandbox, request: object = {}): Promise<ItemPage> {
  const answer = await post(sandbox, { ...whole, ...request });
  if (answer.status !== 200) throw new Error(`search: ${answer.status} ${answer.text}`);
  return answer.body as unknown as ItemPage;
}

export function post(sandbox: TestSandbox, body: unknown): Promise<Answer> {
  return sandbox.request('POST', '/public/stac/search', { body, headers: key });
}

export async function ids(sandbox: TestSandbox, request: object = {}): Promise<string[]> {
  return (await search(sandbox, { limit: 1000, sortby: [{ field: 'id', direction: 'asc' }], ...request })).features.map(
    ({ id }) => id,
  );
}

/** A STAC item as an import file has it. */
export function item(
  id: string,
  more: {
    collection?: string;
    ring?: number[][];
    geometry?: object;
    datetime?: string;
    title?: string;
    properties?: object;
  } = {},
): object {
  const ring = more.ring ?? [
    [10, 50],
    [11, 50],
    [11, 51],
    [10, 51],
    [10, 50],
  ];
  return {
    type: 'Feature',
    stac_version: '1.0.0',
    id,
    collection: more.collection ?? 'a',
    ...(more.title ? { title: more.title } : {}),
    geometry: more.geometry ?? { type: 'Polygon', coordinates: [ring] },
    properties: { datetime: more.datetime ?? '2024-06-01T00:00:00.000Z', ...more.properties },
  };
}

export function square(west: number, south: number, side: number): number[][] {
  return [
    [west, south],
    [west + side, south],
    [west + side, south + side],
    [west, south + side],
    [west, south],
  ];
}

/** A sandbox whose catalog holds these items. */
export async function sandboxWith(
  items: readonly object[],
  options: StartOptions = {},
): Promise<TestSandbox & { refused: string[] }> {
  const refused: string[] = [];
  const sandbox = await startSandbox({
    ...options,
    async prepare(made, dataDir) {
      const path = join(dataDir, 'items.ndjson');
      await appendFile(path, items.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n'));
      await made.importPath(path, {
        onProgress: () => {},
        onRefused: (where, reason) => void refused.push(`${where}: ${reason}`),
      });
    },
  });
  return { ...sandbox, refused };
}

export type { StacCatalog, StacCollection, StacItem, StacLink };
