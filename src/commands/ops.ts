import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readDatabaseSettings } from '../app/config.ts';
import { openDatabase } from '../app/database.ts';
import { caseOf, spanOf, statusOf, type RunCase } from '../app/runs/desk.ts';
import { isFinal } from '../app/runs/run-state.ts';
import type { WorkerPlace } from '../app/runs/placement.ts';
import { readFilter } from '../app/runs/run-filter.ts';
import { newRunLike, type Run, type RunFilter, type RunStore } from '../app/runs/run.ts';
import { SqlRunStore } from '../app/runs/sql-run-store.ts';
import { didYouMean } from '../contract/did-you-mean.ts';
import { KitError } from '../contract/index.ts';
import { defineCommand } from './command.ts';

const usage = `usage: marketplace-app-kit ops COMMAND [options]

Shows and changes the runs and workers of an app. The app can be running or stopped.

  status                 Show workers, runs by state, and runs that no living worker can do
  runs                   List runs, the most recently changed first
  why RUN                Show the states, the stages and the failure of a run
  cancel RUN...          Cancel runs that have not ended
  retry RUN...           Start ended runs again, each as a new run that its user has to approve
  requeue RUN...         Take runs away from their workers; other workers continue from the last committed stage
  drain WORKER           Give no more runs to a worker; it finishes the runs that it has
  wake WORKER            Give runs to a drained worker again

  --where FILTERS        Select the runs for runs, cancel, retry or requeue. Separate filters by commas:
                         state=FAILED, code=disk_full, step=ndvi, owner=USER, worker=NAME, since=2h (s, m, h, d)
  --limit N              Maximum number of runs (default: 50)
  --json                 Print JSON

DATABASE_URL     postgres://...; without it, SQLite below DATA_DIR (default data/app)`;

const mostRuns = 10_000;
const commandNames = ['status', 'runs', 'why', 'cancel', 'retry', 'requeue', 'drain', 'wake'] as const;
type OpsCommand = (typeof commandNames)[number];

const bad = (message: string) => new KitError('bad_arguments', message);

export default defineCommand(import.meta, {
  usage,
  options: { where: { type: 'string' }, limit: { type: 'string', default: '50' }, json: { type: 'boolean' } },
  allowPositionals: true,
  async run({ values, positionals: [name, ...operands] }) {
    const command = commandNames.find((known) => known === name);
    if (!command)
      throw bad(
        name === undefined ? usage : `there is no command ${name}${didYouMean(name, commandNames)}\n\n${usage}`,
      );
    const limit = Number(values.limit);
    if (!Number.isInteger(limit) || limit < 1 || limit > mostRuns)
      throw bad(`--limit must be a whole number from 1 to ${mostRuns}, and not ${values.limit}`);
    const filter = values.where === undefined ? null : readFilter(values.where, Date.now());
    const { dataDir, databaseUrl } = readDatabaseSettings(process.env);
    if (databaseUrl === null && !existsSync(join(dataDir, 'app.db')))
      throw bad(`${dataDir} holds no database of an app: set DATA_DIR or DATABASE_URL`);
    const database = await openDatabase({ dataDir, databaseUrl, migrates: false, connections: 2 });
    try {
      const store = new SqlRunStore(database, Date.now, { isShared: databaseUrl !== null });
      const { answer, lines, exitCode = 0 } = await answerOf(store, command, { operands, filter, limit });
      console.log(values.json ? JSON.stringify(answer, null, 2) : lines.join('\n'));
      return exitCode;
    } finally {
      await database.destroy();
    }
  },
});

interface Answer {
  readonly answer: unknown;
  readonly lines: readonly string[];
  /** Default: 0. */
  readonly exitCode?: number;
}

interface Asked {
  readonly operands: readonly string[];
  readonly filter: RunFilter | null;
  readonly limit: number;
}

const listed = ({ id, state, stepId, stepVersion, owner, failure, createdAtMs, updatedAtMs }: Run) => ({
  ...{ id, state, step: `${stepId}@${stepVersion}`, owner, code: failure?.code ?? null },
  createdAt: new Date(createdAtMs).toISOString(),
  updatedAt: new Date(updatedAtMs).toISOString(),
});

async function answerOf(store: RunStore, command: OpsCommand, asked: Asked): Promise<Answer> {
  const { operands, filter, limit } = asked;
  if (command === 'status') return status(store);
  if (command === 'runs') {
    const runs = await store.search({ ...filter, limit });
    return { answer: runs.map(listed), lines: runs.length > 0 ? runs.map(lineOf) : ['no runs'] };
  }
  if (command === 'why') {
    const [id, ...more] = operands;
    if (id === undefined || more.length > 0) throw bad('name one run: ops why RUN');
    const found = await caseOf(store, id);
    if (!found) throw bad(`there is no run ${id}`);
    return { answer: found, lines: linesOfCase(found) };
  }
  if (command === 'drain' || command === 'wake') return setRest(store, command, operands);
  return change(store, command, asked);
}

async function status(store: RunStore): Promise<Answer> {
  const answer = await statusOf(store, Date.now());
  const { workers, runs, stranded } = answer;
  return {
    answer,
    lines: [
      workers.length > 0 ? 'workers:' : 'workers: none within the last hour',
      ...workers.map(
        ({ name, isAlive, rests, runs: has, can, place }) =>
          `  ${name}  ${isAlive ? (rests ? 'drained' : 'alive') : 'gone'}, ${has} runs${place ? placeInWords(place) : ''}${can ? `, ${can.join(' ')}` : ''}`,
      ),
      'runs:',
      ...runs.map(
        ({ state, number, oldestSeconds }) =>
          `  ${state}  ${number}${oldestSeconds === null ? '' : `, the oldest for ${spanOf(oldestSeconds)}`}`,
      ),
      ...(stranded.length > 0 ? ['runs that no living worker can do:', ...stranded.map((id) => `  ${id}`)] : []),
    ],
  };
}

async function setRest(store: RunStore, command: 'drain' | 'wake', operands: readonly string[]): Promise<Answer> {
  const [worker, ...more] = operands;
  if (worker === undefined || more.length > 0) throw bad(`name one worker: ops ${command} WORKER`);
  if (!(await store.setRest(worker, command === 'drain'))) {
    const names = (await store.listWorkers()).map(({ name }) => name);
    throw bad(`there is no worker ${worker}${didYouMean(worker, names)}; ops status lists them`);
  }
  const what = command === 'drain' ? 'takes no more runs' : 'takes runs again';
  return { answer: { worker, rests: command === 'drain' }, lines: [`${worker} ${what}, within a second`] };
}

/** Changes each run, and reports the result of each. */
async function change(
  store: RunStore,
  command: 'cancel' | 'retry' | 'requeue',
  { operands, filter, limit }: Asked,
): Promise<Answer> {
  if (operands.length > 0 === (filter !== null))
    throw bad(`name runs, or choose them by --where: ops ${command} RUN...`);
  const runs: (Run | string)[] = filter
    ? await store.search({ ...filter, limit })
    : await Promise.all(operands.map(async (id) => (await store.find(id)) ?? id));
  const answer: { id: string; isDone: boolean; note: string }[] = [];
  for (const run of runs) {
    if (typeof run === 'string') answer.push({ id: run, isDone: false, note: 'there is no such run' });
    else answer.push({ id: run.id, ...(await changeOne(store, command, run)) });
  }
  return {
    answer,
    lines: answer.length > 0 ? answer.map(({ id, note }) => `${id}  ${note}`) : ['no runs'],
    exitCode: answer.every(({ isDone }) => isDone) ? 0 : 1,
  };
}

async function changeOne(
  store: RunStore,
  command: 'cancel' | 'retry' | 'requeue',
  run: Run,
): Promise<{ isDone: boolean; note: string }> {
  if (command === 'retry') {
    if (!isFinal(run.state))
      return { isDone: false, note: `is ${run.state}; only a run that has ended can be retried` };
    const again = newRunLike(run, Date.now());
    await store.create(again);
    return { isDone: true, note: `retried as ${again.id}` };
  }
  if (isFinal(run.state)) return { isDone: false, note: `is ${run.state} already` };
  if (command === 'requeue')
    return (await store.requeue(run.id))
      ? { isDone: true, note: `is ${run.state}, and waits for a worker` }
      : { isDone: false, note: 'has ended meanwhile' };
  try {
    await store.transition(run, 'CANCELLED');
    return { isDone: true, note: 'is CANCELLED' };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { isDone: false, note: error.message };
  }
}

function lineOf(run: Run): string {
  const { id, state, step, owner, code, updatedAt } = listed(run);
  return [id, state, step, `user ${owner}`, ...(code === null ? [] : [code]), updatedAt].join('  ');
}

function placeInWords({ labels, memoryBytes, cores }: WorkerPlace): string {
  const parts = [
    ...(labels.length > 0 ? [`labels ${labels.join(' ')}`] : []),
    ...(memoryBytes === null ? [] : [`${(memoryBytes / 1024 ** 3).toFixed(1)} GiB`]),
    ...(cores === null ? [] : [`${cores} cores`]),
  ];
  return parts.map((part) => `, ${part}`).join('');
}

function linesOfCase({ run, owner, states, stages, waitsFor, needs, usage }: RunCase): string[] {
  return [
    `run ${run.id}: ${run.state}, ${run.step}, user ${owner}`,
    ...(run.failure ? [`failed: ${run.failure.code}: ${run.failure.message}`] : []),
    ...(needs === null ? [] : [`needs: ${needs}`]),
    ...(usage === null
      ? []
      : [
          `used: ${usage.cpuSeconds.toFixed(1)} s of processor time in ${usage.stepSeconds.toFixed(1)} s, ${usage.peakMemoryBytes} bytes of memory, ${usage.bytesIn} bytes in, ${usage.bytesOut} out, on ${usage.place}`,
        ]),
    ...(waitsFor === null ? [] : [`waits: ${waitsFor}`]),
    'states:',
    ...states.map(({ at, state }) => `  ${at}  ${state}`),
    'stages:',
    ...stages.map(
      ({ begunAt, endedAt, state, worker, attempt, outcome }) =>
        `  ${begunAt} to ${endedAt ?? 'now'}  ${state}, attempt ${attempt}, ${worker}${outcome === null ? '' : `: ${outcome}`}`,
    ),
  ];
}
