// `npm test` and, with `all` as the first argument, `npm run test:all`: type check, lint, the walls between rooms, layout and generated pages, then the
// tests. Further arguments go to Vitest: with them it alone runs.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const isAll = process.argv[2] === 'all';
const given = process.argv.slice(isAll ? 3 : 2);
/** Runs after `npm test`, which has done the checks. */
const isRest = isAll && process.env.TEST_ALL === 'rest';

/** Programs of packages, and scripts of the kit. */
const checks = [
  ['type check and lint', 'oxlint/bin/oxlint'],
  ['rooms', 'dependency-cruiser/bin/dependency-cruise.mjs', '--config', '.dependency-cruiser.mjs', 'src'],
  ['layout', 'oxfmt/bin/oxfmt', '--check'],
  ['docs/openapi.json', null, 'src/commands/openapi.ts', '--check'],
  ['docs/reference', null, '--import', './scripts/preload.mjs', 'scripts/reference.ts', '--check'],
];
const atOnce = 2;
const children = new Set();
let isEnding = false;
// Ctrl-C reaches the children by itself.
for (const signal of ['SIGTERM', 'SIGHUP'])
  process.on(signal, () => {
    isEnding = true;
    for (const child of children) child.kill(signal);
  });

if (given.length === 0 && !isRest && !(await checkAll())) process.exitCode = 1;
else {
  // All tests of a file run if the file is named. `TEST_ALL=rest` runs the tests that `npm test` leaves out.
  const isWhole = isAll || given.length > 0;
  const env = { ...process.env, TEST_ALL: isWhole ? (process.env.TEST_ALL ?? 'yes') : 'no' };
  const tags = isWhole ? (env.TEST_ALL === 'rest' ? ['all'] : []) : ['!all'];
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tags.flatMap((one) => ['--tags-filter', one])];
  process.exitCode = (await run([...args, ...given], { stdio: 'inherit', env })).status;
}

async function checkAll() {
  const waiting = [...checks];
  let passed = true;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let next = waiting.shift(); next && !isEnding; next = waiting.shift()) {
        const [name, program, ...args] = next;
        const began = Date.now();
        const path = program === null ? [] : [join(root, 'node_modules', program)];
        const { status, said } = await run([...path, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
        if (status === 0) console.log(`${name}: passed (${((Date.now() - began) / 1_000).toFixed(1)} s)`);
        else console.log(`${said.trimEnd()}\n${name}: FAILED`);
        passed &&= status === 0;
      }
    }),
  );
  return passed;
}

function run(args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, ...options });
    let said = '';
    children.add(child);
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (said += bytes));
    child.once('error', reject);
    child.once('close', (status) => {
      children.delete(child);
      resolve({ status: status ?? 1, said });
    });
  });
}
