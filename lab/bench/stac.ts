/** `npm run lab -- lab/bench/stac.ts`: search over HTTP on a large catalog, beside SQLite's R*Tree on the same items. `--items 100000 --queries 200`. */
import { booleanIntersects } from '@turf/boolean-intersects';
import { createReadStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { tell, type BenchRow } from './rows.ts';
import { byName, offNadir, makeQueries, percentile, SearchClient, startCatalog } from './stac-client.ts';
import { benchItems, writeItems } from './stac-items.ts';
import { buildPeer } from './stac-peer.ts';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    queries: { type: 'string', default: '200' },
    checked: { type: 'string', default: '100' },
    folder: { type: 'string', default: 'data/bench/stac' },
  },
});
const [count, queries, checked] = [values.items, values.queries, values.checked].map(Number) as [
  number,
  number,
  number,
];
const folder = resolve(values.folder);
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });

async function readThrough(path: string): Promise<void> {
  for await (const chunk of createReadStream(path, { highWaterMark: 4 * 1024 * 1024 })) void chunk;
}

const start = (...more: string[]) => startCatalog(folder, ...more);
const seconds = async (work: () => Promise<void>) => {
  const from = performance.now();
  await work();
  return (performance.now() - from) / 1000;
};

const itemsPath = join(folder, 'items.ndjson');
await writeItems(itemsPath, count);
const importSeconds = await seconds(async () => (await start('--import', itemsPath)).stop());
const peer = buildPeer(join(folder, 'peer.db'), count);
const mib = async (path: string) => ((await stat(path)).size / 1024 ** 2).toFixed(0);
console.log(
  `${count} items: ${await mib(itemsPath)} MiB of NDJSON imported in ${importSeconds.toFixed(1)} s (${(count / importSeconds).toFixed(0)} items/s); database ${await mib(join(folder, 'sandbox', 'sandbox.db'))} MiB`,
);
let sandbox = await start();
let client = new SearchClient(sandbox.url);
const rows: BenchRow[] = [];
const figure = (what: string, unit: string, ours: readonly number[], most: number) =>
  rows.push({ what: `${count.toLocaleString('en')} items: ${what}`, unit, ours, peer: null, goal: { most } });

// The first of each after a start: nobody has asked for the field before.
const first = { startSeconds: [] as number[], filterMs: [] as number[], sortMs: [] as number[] };
for (let round = 0; round < 3; round++) {
  await sandbox.stop();
  client.close();
  first.startSeconds.push(await seconds(async () => void (sandbox = await start())));
  client = new SearchClient(sandbox.url);
  for (const query of makeQueries(5, 1, 20)) await client.search(query);
  first.filterMs.push((await client.post(offNadir(10))).ms);
  first.sortMs.push((await client.post(byName(0))).ms);
}
figure('start', 's', first.startSeconds, 2);
figure('the first filter by a property', 'ms', first.filterMs, 150);
figure('the first sortby a property', 'ms', first.sortMs, 150);

console.log(
  '| box degrees | p50 ms | p95 ms | max ms | matches (median) | R*Tree p50 ms | R*Tree max ms | ours/R*Tree p50 |',
);
console.log(
  '|------------:|-------:|-------:|-------:|-----------------:|--------------:|--------------:|----------------:|',
);
const goals: Readonly<Record<number, number>> = { 1: 10, 10: 20, 60: 60 };
for (const degrees of [1, 10, 60]) {
  const wanted = makeQueries(degrees, 100 + degrees, queries);
  // The server has closed what stood idle while the peer was asked.
  client.reconnect();
  await client.search(wanted[0]!);
  const answers: { numberMatched: number; ms: number }[] = [];
  for (const query of wanted) answers.push(await client.search(query));
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const peerTimes = wanted
    .slice(0, 40)
    .map((query) => peer.search(query))
    .sort((a, b) => a - b);
  const matches = percentile(
    answers.map(({ numberMatched }) => numberMatched).sort((a, b) => a - b),
    0.5,
  );
  const cells = [
    degrees,
    percentile(times, 0.5).toFixed(2),
    percentile(times, 0.95).toFixed(2),
    percentile(times, 1).toFixed(1),
    matches,
    percentile(peerTimes, 0.5).toFixed(2),
    percentile(peerTimes, 1).toFixed(1),
    (percentile(times, 0.5) / percentile(peerTimes, 0.5)).toFixed(3),
  ];
  console.log(`| ${cells.join(' | ')} |`);
  rows.push(
    {
      what: `${count.toLocaleString('en')} items: search over HTTP at ${degrees}°, median`,
      unit: 'ms',
      ours: [percentile(times, 0.5)],
      peer: { name: "SQLite's R*Tree, in its own process", values: [percentile(peerTimes, 0.5)] },
      goal: { most: 5 },
    },
    {
      what: `${count.toLocaleString('en')} items: search over HTTP at ${degrees}°, median`,
      unit: 'ms',
      ours: [percentile(times, 0.5)],
      peer: null,
      goal: { most: goals[degrees] ?? 0 },
    },
  );
}

client.reconnect();
const later = {
  filters: await client.timesOf(30, (i) => offNadir(1 + (i % 28))),
  sorts: await client.timesOf(30, byName),
};
figure('later filters by it, median', 'ms', [percentile(later.filters, 0.5)], 150);
figure('later sorts by it, median', 'ms', [percentile(later.sorts, 0.5)], 150);

const clients = 50;
// From a disk that has not been asked yet a page takes as long as the disk does: what is measured is the server.
await readThrough(join(folder, 'sandbox', 'sandbox.db'));
const slowest: number[] = [];
for (let round = 0; round < 3; round++) {
  const many = makeQueries(1, 900 + round, clients * 10);
  const waits = await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      const own: number[] = [];
      for (const query of many.slice(10 * i, 10 * (i + 1))) own.push((await client.search(query)).ms);
      return own;
    }),
  );
  const sorted = waits.flat().sort((a, b) => a - b);
  slowest.push(percentile(sorted, 0.99));
}
figure(`${clients} clients at once, the database in the machine's cache, the slowest of 100`, 'ms', slowest, 100);

figure('peak memory after the searches', 'MiB', [sandbox.peakMiB()], 400);

// Counts by brute force: every item, every polygon, with a library that the sandbox's own test of boxes does not use.
const checks = [1, 10, 60]
  .flatMap((degrees) => makeQueries(degrees, 500 + degrees, Math.ceil(checked / 3)))
  .slice(0, checked);
const expected = new Array<number>(checks.length).fill(0);
for (const { collection, ms, ring } of benchItems(count)) {
  const [xs, ys] = [ring.map(([x]) => x), ring.map(([, y]) => y)];
  const [west, east, south, north] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  checks.forEach(({ box, collections: wanted, startMs, endMs }, i) => {
    if (
      ms < startMs ||
      ms > endMs ||
      west > box[2] ||
      east < box[0] ||
      south > box[3] ||
      north < box[1] ||
      !wanted.includes(collection)
    )
      return;
    const isInside = west >= box[0] && east <= box[2] && south >= box[1] && north <= box[3];
    const [w, s, e, n] = box;
    const square = {
      type: 'Polygon' as const,
      coordinates: [
        [
          [w, s],
          [e, s],
          [e, n],
          [w, n],
          [w, s],
        ],
      ],
    };
    if (isInside || booleanIntersects({ type: 'Polygon', coordinates: [ring.map(([x, y]) => [x, y])] }, square))
      expected[i] = (expected[i] ?? 0) + 1;
  });
}
client.reconnect();
let equal = 0;
for (const [i, query] of checks.entries()) {
  const { numberMatched } = await client.search(query);
  if (numberMatched === expected[i]) equal += 1;
  else
    console.log(
      `differs: ${query.box.map((v) => v.toFixed(3)).join(',')} answered ${numberMatched}, brute force ${expected[i]}`,
    );
}
console.log(
  `counts equal to brute force: ${equal} of ${checks.length}; matches in all: ${expected.reduce((a, b) => a + b, 0)}, fewest ${Math.min(...expected)}, most ${Math.max(...expected)}`,
);

client.close();
peer.close();
await sandbox.stop();
await rm(folder, { recursive: true, force: true });
tell(rows);
if (equal !== checks.length) process.exitCode = 1;
