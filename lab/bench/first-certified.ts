/**
 * `npm run lab -- lab/bench/first-certified.ts`: the time from an empty folder to the first certified app for developers in other
 * languages, without the time that a person needs. Installs the package from a tarball, and certifies the example of each
 * language by all scenarios. A language that is not installed has no row. `--rounds 1`.
 */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { skippedStatus, tell, type BenchRow } from './rows.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '1' } } });
const root = new URL('../../', import.meta.url).pathname;
const examples = join(root, 'examples');
/** Each language with its program and the command that starts its example. */
const languages: readonly (readonly [name: string, program: string, command: string])[] = [
  ['Python', 'python3', `python3 ${examples}/python/app.py`],
  ['Go', 'go', `go run ${examples}/go/main.go`],
  ['Java', 'java', `java ${examples}/java/App.java`],
];

function seconds(program: string, args: readonly string[], cwd: string): number {
  const began = performance.now();
  const { error, status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return (performance.now() - began) / 1000;
}

const folder = await mkdtemp(join(tmpdir(), 'first-certified-'));
try {
  seconds(process.execPath, [join(root, 'scripts/sandbox-package.mjs'), folder], folder);
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  const rows: BenchRow[] = [];
  for (const [name, program, command] of languages) {
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) continue;
    const ours: number[] = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      const project = join(folder, `${name}-${round}`);
      await mkdir(project);
      await writeFile(join(project, 'package.json'), '{"name":"somebody","private":true}');
      const installed = seconds('npm', ['install', '--no-audit', '--no-fund', join(folder, tarball)], project);
      ours.push(installed + seconds('npx', ['marketplace-sandbox', 'certify', '--start', command], project));
    }
    rows.push({
      ...{ what: `from an empty folder to the first certified app, in ${name}`, unit: 's' },
      ...{ ours, peer: null, goal: { most: 60 } },
    });
  }
  if (rows.length === 0) process.exitCode = skippedStatus;
  else tell(rows);
} finally {
  await rm(folder, { recursive: true, force: true });
}
