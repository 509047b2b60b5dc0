/** Breaks the kit's steps on purpose, one mistake at a time, and says which of them their battery lets through. */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pLimit from 'p-limit';
import { codePattern, type Mutation } from '../../test/support/mutation.ts';
import { stepMutants } from './step-mutants.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const usage = `usage: npm run lab -- lab/drill/mutate-steps.ts [ID...] [--clean RUNS]

Breaks each step in its ways and runs its battery. Exit 0 only where every mistake is found, and no clean run raises an alarm.
  --clean RUNS   batteries of steps as they are, over all steps (default 10)
  --jobs N       at the same time (default 2)
  --only WORDS   mistakes whose names hold these, separated by commas`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    clean: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    jobs: { type: 'string', default: '2' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const ids = positionals.length > 0 ? positionals : Object.keys(stepMutants);
const limit = pLimit(Number(values.jobs));

/** The first that failed; null where all of it passed. */
async function alarmOf(id: string, mutations: readonly Mutation[]): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'step-mutant-'));
  try {
    for (const name of ['src', 'templates', 'scripts', 'package.json', 'test/support'])
      await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    for (const { file, from, to } of mutations) {
      const source = await readFile(join(folder, file), 'utf8');
      if ([...source.matchAll(codePattern(from))].length !== 1) throw new Error(`${file} does not have once: ${from}`);
      await writeFile(
        join(folder, file),
        source.replace(codePattern(from), () => to),
      );
    }
    const args = ['--import', './scripts/preload.mjs', 'src/commands/test-step.ts', id, '--bail', '--side', '2048'];
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, MY_APP: 'test/support/all-steps.ts' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    if (/^\d+ passed, 0 failed(, \d+ exempt)?$/m.test(out)) return null;
    return /FAIL {2}(.*)/.exec(out)?.[1] ?? errors.trim().split('\n').at(-1) ?? 'it did not start';
  } finally {
    // Processes that a step has started may still write.
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

let missed = 0;
let alarms = 0;
const tasks = ids.flatMap((id) => [
  ...(stepMutants[id] ?? [])
    .filter(({ name }) => values.only.split(',').some((words) => name.includes(words)))
    .map(({ name, mutations }) =>
      limit(async () => {
        const alarm = await alarmOf(id, mutations);
        if (alarm === null) missed += 1;
        console.log(
          `${alarm === null ? 'MISSED' : 'found '}  ${id}: ${name}${alarm === null ? '' : `  (${alarm.slice(0, 120)})`}`,
        );
      }),
    ),
]);
const cleanRuns = Array.from({ length: Number(values.clean) }, (_, i) =>
  limit(async () => {
    const id = ids[i % ids.length]!;
    const alarm = await alarmOf(id, []);
    if (alarm === null) return;
    alarms += 1;
    console.log(`ALARM   ${id}, as it is: ${alarm}`);
  }),
);
await Promise.all([...tasks, ...cleanRuns]);
console.log(
  `${tasks.length - missed} of ${tasks.length} mistakes found; ${alarms} alarms in ${cleanRuns.length} clean runs`,
);
process.exitCode = missed + alarms > 0 ? 1 : 0;
