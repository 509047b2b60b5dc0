/** Drives a run in the network of the composition. `whole` runs the flow, `begin` prints a waiting run and its session, and `end RUN HOME COOKIE` finishes that run, and `hostile ATTACK TARGET` prints how a run of the hostile step failed. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import { sandboxControl } from '../../src/testing/sandbox-control.ts';

const { adminKey } = JSON.parse(readFileSync(0, 'utf8')) as { adminKey: string };
const control = sandboxControl({ url: 'http://127.0.0.1:4010', adminKey });
const [what, ...begun] = process.argv.slice(2);
const limitMs = 180_000;

async function begin(requested: object): Promise<string[]> {
  const session = await openLaunch((await control.launch('http://127.0.0.1:3000/launch')).launchUrl);
  const { id } = await session.startRun({ ...requested, input: { type: 'synthetic', size: 512 } });
  return [id, session.home, session.cookie];
}

const [attack, target] = begun;
const requested = what === 'hostile' ? { stepId: 'hostile', parameters: { attack, target } } : { stepId: 'cog' };
const [id = '', home = '', cookie = ''] = what === 'end' ? begun : await begin(requested);

async function until(state: RunView['state']): Promise<RunView> {
  for (const endMs = performance.now() + limitMs; ; await sleep(500)) {
    const response = await fetch(new URL(`api/runs/${id}`, home), { headers: { cookie } });
    if (!response.ok) throw new Error(`the app answered ${response.status}: ${await response.text()}`);
    const run = (await response.json()) as RunView;
    if (run.state === state) return run;
    if (run.isFinal || performance.now() > endMs)
      throw new Error(`the run is ${run.state}: ${JSON.stringify(run.failure)}`);
  }
}

const { operationId } = await until('AWAITING_APPROVAL');
if (what === 'begin') console.log([id, home, cookie].join(' '));
else {
  if (operationId === null) throw new Error('the run has no operation');
  await control.approve(operationId);
  const run = await until(what === 'hostile' ? 'FAILED' : 'COMPLETED');
  if (what === 'hostile') console.log(run.failure?.message);
}
