/**
 * `npm run lab -- lab/bench/pgstac.ts --pgstac pgstac.sql`: the catalog beside pgstac on the same 100,000 items, ours over HTTP, pgstac by a
 * connection of its own. It needs PostgreSQL with PostGIS, and the `pgstac.sql` of a release (https://github.com/stac-utils/pgstac);
 * `PGSTAC_SQL` names it too. `--items 100000`: pgstac takes in some hundred a second.
 */
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { env } from 'node:process';
import { parseArgs } from 'node:util';
import { buildPgstac } from './pgstac-peer.ts';
import { skippedStatus, tell, type BenchRow } from './rows.ts';
import { bodyOf, byName, offNadir, makeQueries, percentile, SearchClient, startCatalog } from './stac-client.ts';
import { writeItems } from './stac-items.ts';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    pgstac: { type: 'string', default: env['PGSTAC_SQL'] ?? '' },
    folder: { type: 'string', default: 'data/bench/pgstac' },
  },
});
if (!existsSync(values.pgstac)) {
  console.log(`pgstac.sql is wanted: --pgstac FILE, or PGSTAC_SQL; ${values.pgstac || 'nothing'} is not there`);
  process.exit(skippedStatus);
}
const count = Number(values.items);
const folder = resolve(values.folder);
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
const itemsPath = join(folder, 'items.ndjson');
await writeItems(itemsPath, count);

const began = performance.now();
const pgstac = await buildPgstac(values.pgstac, itemsPath);
console.log(`pgstac ${pgstac.version}: ${count} items in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
const rows: BenchRow[] = [];
try {
  const imported = performance.now();
  await (await startCatalog(folder, '--import', itemsPath)).stop();
  console.log(`sandbox: ${count} items in ${((performance.now() - imported) / 1_000).toFixed(0)} s`);
  const sandbox = await startCatalog(folder);
  const client = new SearchClient(sandbox.url);
  try {
    const byProperty = 'sort by a property';
    const works: readonly (readonly [string, readonly object[]])[] = [
      ...[1, 10, 60].map(
        (degrees) => [`search at ${degrees}°`, makeQueries(degrees, degrees, 30).map(bodyOf)] as const,
      ),
      ['filter by a property', Array.from({ length: 28 }, (_, i) => offNadir(i + 1))],
      [byProperty, Array.from({ length: 28 }, (_, i) => ({ ...byName(i), limit: 10 + i }))],
    ];
    for (const [what, requests] of works) {
      const [ours, theirs]: [number[], number[]] = [[], []];
      let otherPages = 0;
      for (const wanted of requests) {
        // Newest first, where nothing else is asked for. Of that pgstac's newest answers a page of its oldest partition, and says as
        // many items: such pages are counted. Sorts by a property have to be the same.
        const request = { sortby: [{ field: 'datetime', direction: 'desc' }], ...wanted };
        const [own, other] = [await client.post(request), await pgstac.search(request)];
        const isSamePage = own.ids.join() === other.ids.join();
        if (own.numberMatched !== other.numberMatched || (what === byProperty && !isSamePage))
          throw new Error(
            `${JSON.stringify(request)}: here ${JSON.stringify(own)}, in pgstac ${JSON.stringify(other)}`,
          );
        if (!isSamePage) otherPages += 1;
        ours.push(own.ms);
        theirs.push(other.ms);
      }
      if (otherPages > 0)
        console.log(`${what}: as many items in both, and other ones on ${otherPages} of ${requests.length} pages`);
      const middle = (times: number[]) =>
        percentile(
          times.toSorted((a, b) => a - b),
          0.5,
        );
      rows.push({
        what: `${count.toLocaleString('en')} items: ${what}, median`,
        unit: 'ms',
        ours: [middle(ours)],
        peer: { name: `pgstac ${pgstac.version}, no HTTP`, values: [middle(theirs)] },
        goal: { most: 1 },
      });
    }
  } finally {
    client.close();
    await sandbox.stop();
  }
} finally {
  await pgstac.close();
  await rm(folder, { recursive: true, force: true });
}
tell(rows);
