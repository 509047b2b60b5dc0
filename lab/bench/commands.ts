/** `npm run lab -- lab/bench/commands.ts`: how long each command takes until it says its usage, and the demo after set-up. `--rounds 3`. */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { tell, type BenchRow } from './rows.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, demo: { type: 'boolean', default: true } },
  allowNegative: true,
});
const rounds = Number(values.rounds);
const names = ['demo', 'dev', 'sandbox', 'certify', 'new-step', 'test-step', 'drift', 'app'];

function secondsOf(args: readonly string[]): number {
  const began = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return (performance.now() - began) / 1000;
}

const rows: BenchRow[] = [];
const bin = 'bin/marketplace-app-kit.mjs';
for (const name of names) {
  secondsOf([bin, name, '--help']);
  const ours = Array.from({ length: rounds }, () => secondsOf([bin, name, '--help']));
  rows.push({ what: `${name}: until it says its usage`, unit: 's', ours, peer: null, goal: { most: 1 } });
}
if (values.demo) {
  secondsOf([bin, 'demo']);
  const ours = Array.from({ length: rounds }, () => secondsOf([bin, 'demo']));
  rows.push({ what: 'npm run demo after set-up', unit: 's', ours, peer: null, goal: { most: 8 } });
}
tell(rows);
