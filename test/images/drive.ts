/** Runs in the network of the composition: `whole`, `begin` (prints the launch) or `end LAUNCH` of a run. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { openLaunch, type AppSession } from '../../src/testing/app-session.ts';
import { sandboxControl } from '../../src/testing/sandbox-control.ts';

const { adminKey } = JSON.parse(readFileSync(0, 'utf8')) as { adminKey: string };
const control = sandboxControl({ url: 'http://127.0.0.1:4010', adminKey });
const [what, begun] = process.argv.slice(2);
const limitMs = 180_000;

async function until(session: AppSession, id: string, state: RunView['state']): Promise<RunView> {
  for (const endMs = performance.now() + limitMs; ; await sleep(500)) {
    const run = await session.run(id);
    if (run.state === state) return run;
    if (run.isFinal || performance.now() > endMs)
      throw new Error(`the run is ${run.state}: ${JSON.stringify(run.failure)}`);
  }
}

const { launchUrl } = await control.launch('http://127.0.0.1:3000/launch');
const session = await openLaunch(launchUrl);
const id = begun ?? (await session.startRun({ stepId: 'cog', input: { type: 'synthetic', size: 512 } })).id;
if (what !== 'end') await until(session, id, 'AWAITING_APPROVAL');
if (what === 'begin') console.log(id);
else {
  const { operationId } = await session.run(id);
  if (operationId === null) throw new Error('the run has no operation');
  await control.approve(operationId);
  await until(session, id, 'COMPLETED');
}
