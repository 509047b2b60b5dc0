// @module-tag all
/** The simulation can fail: mistakes that were made once, or nearly, and what it says of each. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';
import { mutant, type Mutation } from '../support/mutant.ts';

const timeout = 900_000;
const engine = 'src/app/runs/run-engine.ts';
const store = 'src/app/runs/sql-run-store.ts';

const [alone, many] = ['one process', 'several workers'];
const mutants: readonly [string, string, RegExp, ...Mutation[]][] = [
  [
    'a cancel that is answered before it is committed',
    alone,
    /was answered as cancelled, and is|later|twice/,
    {
      file: engine,
      from: 'const cancelled = await this.#commitCancel(run);',
      to: "const cancelled = { ...run, state: 'CANCELLED' as const }; if (!this.#activeRuns.has(run.id)) await this.#commitCancel(run);",
    },
  ],
  [
    'a lost answer to a cancel that nobody looks after',
    alone,
    /ms later/,
    { file: engine, from: 'if (error instanceof DatabaseUnavailableError) this.#lease.doubt();', to: '' },
  ],
  [
    'a claim that does not fence',
    many,
    /has 2 files|twice|later|was answered as cancelled/,
    {
      file: store,
      from: "        .where('claim', '=', run.claim)\n        .returning('worker')",
      to: "        .returning('worker')",
    },
  ],
  [
    "the world's failure as the end of a run",
    alone,
    /is FAILED/,
    {
      file: engine,
      from: "if (error instanceof DatabaseUnavailableError || (kind === 'transient'",
      to: "if (false || (kind === 'input'",
    },
  ],
  [
    'a key that is made when it is sent',
    alone,
    /has \d operations/,
    {
      file: 'src/app/runs/stages/ask-for-approval.ts',
      from: 'idempotencyKey: run.idempotencyKey',
      to: 'idempotencyKey: run.idempotencyKey + run.claim',
    },
  ],
  [
    'a worker that takes anew what it drives',
    alone,
    /twice at a time|was polled by|later/,
    { file: engine, from: 'if (this.#activeRuns.has(runId)) return;', to: '' },
    {
      file: engine,
      from: 'const idle = [...held.keys()].filter((id) => !this.#activeRuns.has(id));',
      to: 'const idle = [...held.keys()];',
    },
  ],
  [
    'a dead worker whose runs nobody looks for',
    many,
    /is still/,
    { file: engine, from: 'if (!this.#lease.mayJudgeOthers) return 0;', to: 'return 0;' },
  ],
  [
    'a worker that asks the platform before it asks what it still has',
    many,
    /was polled by|later|has 2 files/,
    { file: 'src/app/runs/worker-lease.ts', from: 'while (this.#clock() >= this.#endsAtMs)', to: 'while (false)' },
  ],
  [
    'an upload that was begun, and is forgotten',
    alone,
    /has 2 files|names file/,
    {
      file: 'src/app/runs/stages/upload.ts',
      from: 'fileName, sourceType, facts, resume },',
      to: 'fileName, sourceType, facts, resume: null },',
    },
  ],
  [
    'a file that is forgotten when its neighbour has to be made again',
    alone,
    /has \d files, not/,
    {
      file: 'src/app/runs/stages/upload.ts',
      from: 'const known = run.files.find((file) => isOf(file, output));',
      to: 'const known = undefined as RunFile | undefined;',
    },
  ],
  [
    'an operation with a new request at each repeat',
    alone,
    /is FAILED: .*idempotency_key_reused/,
    {
      file: 'src/app/runs/stages/ask-for-approval.ts',
      from: 'run.operation ?? operationOf(',
      to: 'operationOf(',
    },
  ],
  [
    'an upload that continues with the bytes of another attempt',
    many,
    /contains other bytes/,
    {
      file: 'src/app/runs/stages/upload.ts',
      from: "transition(current, 'PROCESSING', { outputs: [], upload: null })",
      to: "transition(current, 'PROCESSING', { outputs: [] })",
    },
    { file: 'src/app/runs/stages/process.ts', from: 'provenance, upload: null, result', to: 'provenance, result' },
  ],
  [
    'a refused password as a mistake in the query',
    alone,
    /is FAILED/,
    { file: 'src/app/database-unavailable.ts', from: '/^(22|23|', to: '/^(22|23|28|' },
  ],
  [
    'a token that is not renewed when the platform refuses it',
    alone,
    /is FAILED: .*token_expired/,
    {
      file: 'src/platform-client/identity-token.ts',
      from: "if (error.code === 'token_expired' || error.code === 'token_revoked') return true;",
      to: '',
    },
  ],
  [
    'a renewed token that cannot be written down, as the end of the session',
    alone,
    /is FAILED: .*token_expired/,
    {
      file: 'src/platform-client/identity-token.ts',
      from: 'throw renewal instanceof PlatformError && !renewal.isTransient ? error : renewal;',
      to: 'throw renewal instanceof PlatformError && renewal.isTransient ? renewal : error;',
    },
  ],
  [
    'a lease that counts from its answer',
    many,
    /was polled by|later|twice|has 2 files/,
    { file: engine, from: 'this.#lease.renewed(fromMs);', to: 'this.#lease.renewed(this.#lease.now());' },
  ],
  [
    'a lease by a clock that can be set back',
    many,
    /was polled by|later|twice|has 2 files/,
    { file: 'src/app/runs/worker-lease.ts', from: 'clock = () => performance.now()', to: 'clock = () => Date.now()' },
  ],
  [
    'a janitor that does not know where the output is',
    alone,
    /was removed, and/,
    {
      file: 'src/app/runs/work-folders.ts',
      from: ' || run.outputs.some(({ path }) => path.startsWith(join(folder, name) + sep))',
      to: '',
    },
  ],
  [
    'a janitor that forgets what has ended',
    alone,
    /is still there/,
    {
      file: 'src/app/runs/work-folders.ts',
      from: 'if (!run || isFinal(run.state)) return void (await this.#disk.remove(folder));',
      to: 'if (!run || isFinal(run.state)) return;',
    },
  ],
];

describe.concurrent('is found out', () => {
  test.each(mutants)('%s', { timeout }, async (_name, world, says, ...mutations) => {
    const folder = await mutant(mutations, ['test', 'lab', 'vitest.config.ts']);
    const output = await simulateIn(folder, world);
    expect(output).toMatch(/Property failed/);
    expect(output).toMatch(says);
  });
});

async function simulateIn(folder: string, world: string): Promise<string> {
  const child = spawn(
    process.execPath,
    [join(projectRoot, 'node_modules/vitest/vitest.mjs'), 'run', 'test/app/simulated-faults.test.ts', '-t', world],
    {
      cwd: folder,
      env: { ...process.env, SIMULATIONS: '80', SIMULATIONS_SHRINK: 'no', SIMULATIONS_SEED: '1', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return out + errors;
}
