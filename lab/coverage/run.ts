/**
 * `npm run lab -- lab/coverage/run.ts [VITEST-ARGUMENTS]`: runs the tests, and prints how much of each folder of src they reach and
 * which modules they reach least. Without arguments it runs the tests of `npm test`; `TEST_ALL=yes` adds the slow tests.
 *
 * The coverage leaves out code in separate processes that a test starts, such as commands and confined jobs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Share {
  readonly total: number;
  readonly covered: number;
}
interface FileShares {
  readonly lines: Share;
  readonly branches: Share;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'data/coverage');
await mkdir(folder, { recursive: true });
const options = ['--coverage.enabled', '--coverage.provider=v8', '--coverage.include=src/**/*.ts', '--coverage.reporter=json-summary', `--coverage.reportsDirectory=${folder}`, '--coverage.reportOnFailure']; // oxfmt-ignore
const child = spawn(
  process.execPath,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...options, ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
const [status] = (await once(child, 'exit')) as [number | null];

const summary = JSON.parse(await readFile(join(folder, 'coverage-summary.json'), 'utf8')) as Record<string, FileShares>;
const files = Object.entries(summary)
  .filter(([path]) => path !== 'total')
  .map(([path, shares]) => ({ path: relative(root, path), ...shares }));
/** `src/app/runs` of `src/app/runs/stages/retry.ts`. */
const folderOf = (path: string) => dirname(path).split('/').slice(0, 3).join('/');
const percent = (shares: readonly Share[]) => {
  const total = shares.reduce((sum, share) => sum + share.total, 0);
  return total === 0 ? 100 : (100 * shares.reduce((sum, share) => sum + share.covered, 0)) / total;
};
const rowOf = (name: string, of: typeof files) =>
  `| ${name} | ${of.reduce((sum, { lines }) => sum + lines.total, 0)} | ${percent(of.map(({ lines }) => lines)).toFixed(1)} % | ${percent(of.map(({ branches }) => branches)).toFixed(1)} % |`;
const folders = [...Map.groupBy(files, ({ path }) => folderOf(path))].toSorted(([a], [b]) => a.localeCompare(b, 'en'));
const table = [
  '| folder | lines with code | lines reached | branches reached |',
  '| --- | --: | --: | --: |',
  ...folders.map(([name, of]) => rowOf(name, of)),
  rowOf('all', files),
].join('\n');
const least = files
  .filter(({ lines }) => lines.total > 0 && lines.covered < lines.total)
  .toSorted((a, b) => b.lines.total - b.lines.covered - (a.lines.total - a.lines.covered))
  .slice(0, 30)
  .map(
    ({ path, lines }) =>
      `${String(lines.total - lines.covered).padStart(5)} of ${lines.total} lines not reached: ${path}`,
  );
console.log(`\n${table}\n\n${least.join('\n')}`);
await writeFile(join(folder, 'table.md'), `${table}\n`);
process.exitCode = status ?? 1;
