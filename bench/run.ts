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
import { pageOf, type BenchResults } from './page.ts';
import { isMet, tableOf, type BenchRow } from './rows.ts';

/** In the order of the page. */
const benches = {
  upload: [],
  steps: ['--rounds', '1'],
  'child-start': [],
  commands: [],
  stac: [],
  waiting: ['--seconds', '40'],
  crowded: [],
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
const preload = new URL('../scripts/preload.mjs', import.meta.url).href;
const results: Partial<Record<Bench, BenchRow[]>> = {};
for (const name of names.filter((one) => wanted.includes(one))) {
  console.log(`\n## ${name}\n`);
  await rm(rowsFile, { force: true });
  const script = new URL(`./${name}.ts`, import.meta.url).pathname;
  const child = spawn(process.execPath, ['--import', preload, script, ...benches[name]], {
    stdio: 'inherit',
    env: { ...process.env, BENCH_ROWS: rowsFile },
  });
  await once(child, 'exit');
  const text = await readFile(rowsFile, 'utf8').catch(() => '');
  results[name] = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as BenchRow);
  // A bench that tells nothing has fallen over: what it said stands above.
  if (results[name].length === 0) process.exitCode = 1;
}
await rm(rowsFile, { force: true });

// Of benches that were not run now the page keeps what was measured last.
const kept = new URL('./results.json', import.meta.url);
if (values.write) {
  const { benches: before } = JSON.parse(await readFile(kept, 'utf8').catch(() => '{"benches":{}}')) as BenchResults;
  for (const name of names) if (!results[name] && before[name]) results[name] = [...before[name]];
}
const rows = names.flatMap((name) => results[name] ?? []);
const all: BenchResults = {
  at: new Date().toISOString(),
  machine: `${cpus().length} x ${cpus()[0]?.model ?? arch()}, ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Linux ${release()}, Node ${process.version}`,
  benches: Object.fromEntries(names.flatMap((name) => (results[name] ? [[name, results[name]]] : []))),
};
console.log(`\n## all\n\n${tableOf(rows)}`);
const json = join(values.folder, 'results.json');
await writeFile(json, `${JSON.stringify(all, null, 2)}\n`);
console.log(`\n${rows.filter(isMet).length} of ${rows.length} goals are met; ${json}`);
if (values.write) {
  await writeFile(kept, `${JSON.stringify(all, null, 2)}\n`);
  await writeFile(new URL('../docs/performance.md', import.meta.url), await pageOf(all));
  console.log('bench/results.json and docs/performance.md are written');
}
if (!rows.every(isMet)) process.exitCode = 1;
