/** `npm run drill`: kills the app at least 100 times, at least 8 times in each state of a run. `-- --kills 100 --least 8 --seed 1`. */
import { parseArgs } from 'node:util';
import { drill } from './drill.ts';
import { killStates } from './plan.ts';

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '100' }, least: { type: 'string', default: '8' }, seed: { type: 'string', default: '1' }, folder: { type: 'string', default: 'data/drill' } },
});
const [kills, leastInEach, seed] = [values.kills, values.least, values.seed].map(Number) as [number, number, number];
const from = performance.now();
const result = await drill({
  kills,
  leastInEach,
  seed,
  folder: values.folder,
  onKill: (done, state) => void (done % 10 === 0 && console.log(`${done} kills, the last in ${state}`)),
});

console.log(`\n| killed in | times |\n|---|---:|`);
for (const state of killStates) console.log(`| ${state} | ${result.kills[state]} |`);
console.log(`\n| received | should have | |\n|---|---|---|`);
console.log(`| ${result.operations} operations | ${result.runs}, one for each run | |`);
console.log(`| ${result.files} files | ${result.states.COMPLETED ?? 0}, one for each run that completed | |`);
console.log(`| ${result.bytesCompared} bytes fetched back | the digest of each output | |`);
console.log(`\nruns ended: ${Object.entries(result.states).map(([state, n]) => `${n} ${state}`).join(', ')}`);
console.log(`upload sessions without a file, which a kill left: ${result.abandonedSessions}`);
result.faults.forEach((fault) => console.log(`FAULT ${fault}`));
console.log(`${result.faults.length === 0 ? 'nothing lost, nothing twice' : `${result.faults.length} faults`} (${((performance.now() - from) / 1000).toFixed(0)} s)`);
process.exitCode = result.faults.length === 0 ? 0 : 1;
