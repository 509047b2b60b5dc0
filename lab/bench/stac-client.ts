/** A sandbox with many items, and searches of it over HTTP: what the benches of the catalog share. */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { seeded } from '../models/seeded.ts';
import { startProcess, type BenchProcess } from './processes.ts';
import { collections, firstMs, spanMs } from './stac-items.ts';
import type { PeerQuery } from './stac-peer.ts';

const apiKey = 'bench';

export function startCatalog(folder: string, ...more: string[]): Promise<BenchProcess> {
  return startProcess(
    new URL('../../src/commands/sandbox.ts', import.meta.url),
    'sandbox',
    ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox'), ...more],
    { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'warn' },
  );
}

export const iso = (ms: number) => new Date(ms).toISOString();

/** Request body in the form that the interface expects. */
export const bodyOf = (query: PeerQuery) => ({
  bbox: query.box,
  collections: query.collections,
  datetime: `${iso(query.startMs)}/${iso(query.endMs)}`,
  limit: query.limit,
});

/** All items: what a filter or a sort has to look at. */
export const all = {
  bbox: [-180, -90, 180, 90],
  collections,
  datetime: `${iso(firstMs)}/..`,
  limit: 10,
};

export const offNadir = (most: number) => ({
  ...all,
  'filter-lang': 'cql2-json',
  filter: { op: '<', args: [{ property: 'view:off_nadir' }, most] },
});

export const byName = (i: number) => ({ ...all, sortby: [{ field: 'name', direction: i % 2 ? 'asc' : 'desc' }] });

export interface Answer {
  readonly numberMatched: number;
  /** In order. */
  readonly ids: readonly string[];
  readonly ms: number;
}

export interface FoundItems {
  readonly numberMatched: number;
  readonly features: readonly { readonly id: string }[];
}

export const answerOf = ({ numberMatched, features }: FoundItems) => ({
  numberMatched,
  ids: features.map(({ id }) => id),
});

/** Searches over connections that are kept. */
export class SearchClient {
  #url: string;
  #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.#url = url;
  }

  search(query: PeerQuery): Promise<Answer> {
    return this.post(bodyOf(query));
  }

  post(wanted: object): Promise<Answer> {
    const body = JSON.stringify(wanted);
    const from = performance.now();
    return new Promise((settle, reject) => {
      const sent = request(
        `${this.#url}/public/stac/search`,
        {
          method: 'POST',
          agent: this.#agent,
          headers: {
            'content-type': 'application/json',
            'x-api-key': apiKey,
            'content-length': Buffer.byteLength(body),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response
            .on('data', (chunk: Buffer) => chunks.push(chunk))
            .on('end', () => {
              const ms = performance.now() - from;
              const text = Buffer.concat(chunks).toString();
              if (response.statusCode !== 200)
                return reject(new Error(`a search was answered ${response.statusCode}: ${text}`));
              settle({ ...answerOf(JSON.parse(text) as FoundItems), ms });
            });
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** In order, from the least. */
  async timesOf(count: number, wanted: (i: number) => object): Promise<number[]> {
    const times: number[] = [];
    for (let i = 0; i < count; i++) times.push((await this.post(wanted(i))).ms);
    return times.sort((a, b) => a - b);
  }

  /** The server closes what stands idle for long: the next search begins anew. */
  reconnect(): void {
    this.close();
    this.#agent = new Agent({ keepAlive: true });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Boxes round seeded places, each with its own interval and collections: no two alike, so that no cache could help. */
export function makeQueries(degrees: number, seed: number, n: number): PeerQuery[] {
  const random = seeded(seed);
  return Array.from({ length: n }, () => {
    const west = random() * (358 - degrees) - 179;
    const south = Math.max(-90, Math.min(90 - degrees, random() * 120 - 60 - degrees / 2));
    const startMs = Math.floor(firstMs + random() * spanMs * 0.5);
    const wanted = collections.filter(() => random() < 0.6);
    return {
      box: [west, south, west + degrees, south + degrees],
      collections: wanted.length > 0 ? wanted : collections,
      startMs,
      endMs: Math.floor(startMs + spanMs * (0.1 + random() * 0.4)),
      limit: 10,
    };
  });
}

export const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
