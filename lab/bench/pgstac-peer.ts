import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { startCluster } from '../drill/cluster.ts';
import { answerOf, type Answer, type FoundItems } from './stac-client.ts';
import { collections } from './stac-items.ts';

/** Items that one statement brings. */
const batchItems = 5_000;

export interface Pgstac {
  readonly version: string;
  search(request: object): Promise<Answer>;
  close(): Promise<void>;
}

const collectionOf = (id: string) => ({
  type: 'Collection',
  stac_version: '1.0.0',
  ...{ id, description: id, license: 'other', links: [] },
  extent: { spatial: { bbox: [[-180, -90, 180, 90]] }, temporal: { interval: [[null, null]] } },
});

/** pgstac in a private cluster, with the items of a file of lines. Rejects where PostGIS is not installed. */
export async function buildPgstac(sqlPath: string, itemsPath: string): Promise<Pgstac> {
  const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-pgstac-'));
  const cluster = await startCluster(folder).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  let client: pg.Client | null = null;
  const close = async () => {
    await client?.end();
    await cluster.remove();
  };
  try {
    const connected = new pg.Client({ connectionString: await cluster.create() });
    await connected.connect();
    client = connected;
    await connected.query(await readFile(sqlPath, 'utf8'));
    await connected.query('set search_path to pgstac, public');
    for (const id of collections)
      await connected.query('select create_collection($1::jsonb)', [JSON.stringify(collectionOf(id))]);
    let batch: string[] = [];
    const flush = async () => {
      const content = `[${batch.join(',')}]`;
      batch = [];
      await connected.query('insert into items_staging (content) select jsonb_array_elements($1::jsonb)', [content]);
    };
    for await (const line of createInterface({ input: createReadStream(itemsPath) }))
      if (batch.push(line) === batchItems) await flush();
    if (batch.length > 0) await flush();
    await connected.query('analyze');
    const { rows } = await connected.query<{ version: string }>('select get_version() as version');
    return {
      version: rows[0]?.version ?? 'of no version',
      async search(request) {
        const from = performance.now();
        const found = await connected.query<{ answer: FoundItems }>('select search($1::jsonb) as answer', [
          JSON.stringify({ ...request, conf: { context: 'on' } }),
        ]);
        const ms = performance.now() - from;
        return { ...answerOf(found.rows[0]!.answer), ms };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
