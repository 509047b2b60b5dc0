/** `npm run lab -- lab/drill/run.ts`: see `--help`. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { endingSignals } from '../../src/commands/command.ts';
import { installCommand, missingOf, needs } from '../../scripts/needs.mjs';
import { drill, type DrillResult } from './drill.ts';
import { families, faultStates, total, type Family } from './plan.ts';

const usage = `npm run lab -- lab/drill/run.ts [options]: does to the app what the world does, in every state of a run, and compares what came of it

  --database          PostgreSQL, a web process and two workers (default: one process with SQLite)
  --fleet             the same processes, with only the faults of a fleet: rolls, drains, requeued runs, a slow database
  --executor          other processes do the steps, by deploy/executors/processes.json
  --busy              two loops burn both cores beside it
  --each N            faults of each family (default 10; 100 for the whole)
  --least N           of them at least so many in each state of a run (default 1; 8 for the whole)
  --families A,B      only these (default: all that this machine and the database allow)
  --silence SECONDS   how long a silent platform says nothing (default 20)
  --seed N            where chance begins (default 1)
  --rounds N          so many drills, each with the next seed (default 1)
  --folder DIR        emptied, and used (default data/drill)

families: ${Object.keys(families).join(', ')}`;

const { values } = parseArgs({
  options: {
    database: { type: 'boolean', default: false },
    fleet: { type: 'boolean', default: false },
    executor: { type: 'boolean', default: false },
    busy: { type: 'boolean', default: false },
    each: { type: 'string', default: '10' },
    least: { type: 'string', default: '1' },
    families: { type: 'string' },
    silence: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '1' },
    folder: { type: 'string', default: 'data/drill' },
    help: { type: 'boolean', default: false },
  },
});
// Processes that the drill has started end with it, on every ending signal.
for (const signal of endingSignals) process.once(signal, () => process.exit(130));

const isShared = values.database || values.fleet;
const wrongNumber = (['each', 'least', 'silence', 'seed', 'rounds'] as const).find(
  (name) => !/^\d{1,6}$/.test(values[name]),
);
if (values.help) {
  console.log(usage);
} else if (wrongNumber !== undefined) {
  refuse(`--${wrongNumber} ${values[wrongNumber]} must be a whole number`);
} else if (isShared && missingOf(needs.postgresql) !== null) {
  refuse(`--database and --fleet need PostgreSQL on this machine: ${installCommand(['postgresql'])}`);
} else {
  const isThere = (family: Family) =>
    families[family] === 'executor'
      ? values.executor
      : isShared
        ? families[family] !== 'alone'
        : families[family] !== 'shared' && families[family] !== 'fleet';
  const known = (Object.keys(families) as Family[]).filter(isThere);
  const wanted =
    values.families?.split(',').map((name) => name.trim()) ??
    known.filter((family) => !values.fleet || families[family] === 'fleet');
  const unknown = wanted.filter((name) => !known.some((one) => one === name));
  if (unknown.length > 0) {
    refuse(
      `--families ${unknown.join(', ')}: ${isShared ? 'with' : 'without'} --database there are ${known.join(', ')}`,
    );
  } else {
    for (let round = 0; round < Number(values.rounds); round++)
      await once(
        known.filter((one) => wanted.includes(one)),
        Number(values.seed) + round,
      );
  }
}

function refuse(reason: string): void {
  console.error(reason);
  process.exitCode = 1;
}

async function once(chosen: readonly Family[], seed: number): Promise<void> {
  const from = performance.now();
  console.log(`seed ${seed}`);
  const result = await drill({
    families: chosen,
    each: Number(values.each),
    leastInEach: Number(values.least),
    seed,
    silenceMs: Number(values.silence) * 1_000,
    folder: resolve(values.folder),
    isShared,
    isBusy: values.busy,
    usesExecutor: values.executor,
    onFault: (done, { family, state }) =>
      void (done % 10 === 0 && console.log(`${done} faults, the last: ${family}, in ${state}`)),
  });
  show(result, chosen);
  console.log(
    `${result.faults.length === 0 ? 'nothing lost, nothing twice, nothing FAILED' : `${result.faults.length} faults of the app`} (seed ${seed}, ${((performance.now() - from) / 1000).toFixed(0)} s)\n`,
  );
  if (result.faults.length > 0) process.exitCode = 1;
}

function show(result: DrillResult, chosen: readonly Family[]): void {
  console.log(
    `\n| fault | ${faultStates.join(' | ')} | in all | did |\n|---|${'---:|'.repeat(faultStates.length + 1)}---|`,
  );
  for (const family of chosen) {
    const counts = result.counts[family];
    console.log(
      `| ${family} | ${faultStates.map((state) => counts[state]).join(' | ')} | ${total(counts)} | ${result.did[family] ?? 'not possible on this machine'} |`,
    );
  }
  console.log(`\n| received | should have |\n|---|---|`);
  console.log(`| ${result.operations} operations | ${result.runs}, one for each run |`);
  console.log(`| ${result.files} files | ${result.states.COMPLETED ?? 0}, one for each run that completed |`);
  console.log(`| ${result.bytesCompared} bytes fetched back | the digest of each output |`);
  console.log(
    `\nruns ended: ${Object.entries(result.states)
      .map(([state, n]) => `${n} ${state}`)
      .join(', ')}`,
  );
  console.log(`upload sessions without a file, which a fault left: ${result.abandonedSessions}`);
  result.faults.forEach((fault) => console.log(`FAULT ${fault}`));
}
