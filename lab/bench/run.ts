/**
 * `npm run bench`: every bench, one after the other, and one table of all their figures with their goals; the same as JSON. It
 * ends with 1 where a goal is missed. `-- --only upload,steps`, `-- --write` for docs/performance.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { arch, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { peerVersionsOf } from './peer-versions.ts';
import { pageOf, type BenchResult, type BenchResults } from './page.ts';
import { isMet, skippedStatus, tableOf, type BenchRow } from './rows.ts';

/** In the order of the page. */
const benches = {
  upload: [],
  steps: ['--rounds', '1'],
  'child-start': [],
  executors: [],
  commands: [],
  approval: [],
  stac: [],
  pgstac: [],
  waiting: ['--seconds', '40'],
  outages: [],
  fleet: [],
  crowded: [],
  pages: [],
  referee: [],
  'first-certified': [],
} satisfies Record<string, string[]>;
type Bench = keyof typeof benches;
const names = Object.keys(benches) as Bench[];

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: names.join(',') },
    folder: { type: 'string', default: 'data/bench' },
    write: { type: 'boolean', default: false },
  },
});
const wanted = values.only.split(',');
const unknown = wanted.filter((name) => !names.some((one) => one === name));
if (unknown.length > 0) {
  console.error(`there is no bench ${unknown.join(', ')}; there are ${names.join(', ')}`);
  process.exit(1);
}
await mkdir(values.folder, { recursive: true });
const rowsFile = join(values.folder, 'rows.ndjson');
const preload = new URL('../../scripts/preload.mjs', import.meta.url).href;
const machine = `${cpus().length} x ${cpus()[0]?.model ?? arch()}, ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Linux ${release()}, Node ${process.version}`;
const results: Partial<Record<Bench, BenchResult>> = {};
const failed: Bench[] = [];
for (const name of names.filter((one) => wanted.includes(one))) {
  console.log(`\n## ${name}\n`);
  await rm(rowsFile, { force: true });
  const script = new URL(`./${name}.ts`, import.meta.url).pathname;
  const child = spawn(process.execPath, ['--import', preload, script, ...benches[name]], {
    stdio: 'inherit',
    env: { ...process.env, BENCH_ROWS: rowsFile },
  });
  const [status] = (await once(child, 'exit')) as [number | null];
  if (status === skippedStatus) continue;
  const text = await readFile(rowsFile, 'utf8').catch(() => '');
  const rows = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as BenchRow);
  // It may end with 1 for a goal that is missed. Otherwise it has fallen over, or found something wrong: what it said stands above.
  if (rows.length === 0 || (status !== 0 && rows.every(isMet))) {
    failed.push(name);
    continue;
  }
  results[name] = { at: new Date().toISOString(), machine, peers: peerVersionsOf(rows), rows };
}
await rm(rowsFile, { force: true });

// The page keeps the last results of benches that were not run now.
const kept = new URL('./results.json', import.meta.url);
const before = JSON.parse(await readFile(kept, 'utf8').catch(() => '{}')) as BenchResults;
const recorded = Object.values(before).flatMap((one) => one.rows);
if (values.write) {
  for (const name of names) {
    const measured = results[name] ?? before[name];
    if (measured) results[name] = measured;
  }
}
const all: BenchResults = Object.fromEntries(
  names.flatMap((name) => (results[name] ? [[name, results[name]] as const] : [])),
);
const rows = Object.values(all).flatMap((one) => one.rows);
console.log(`\n## all\n\n${tableOf(rows, recorded)}`);
const json = join(values.folder, 'results.json');
await writeFile(json, `${JSON.stringify(all, null, 2)}\n`);
console.log(`\n${rows.filter(isMet).length} of ${rows.length} goals are met; ${json}`);
if (failed.length > 0) console.log(`these fell over, or found something wrong: ${failed.join(', ')}`);
if (values.write) {
  await writeFile(kept, `${JSON.stringify(all, null, 2)}\n`);
  await writeFile(new URL('../../docs/performance.md', import.meta.url), await pageOf(all));
  console.log('bench/results.json and docs/performance.md are written');
}
if (failed.length > 0 || !rows.every(isMet)) process.exitCode = 1;
