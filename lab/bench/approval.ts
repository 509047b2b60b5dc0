/**
 * `npm run lab -- lab/bench/approval.ts`: how long after the user's approval the upload begins. Most of it is the wait for the next poll.
 * `-- --runs 20`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openLaunch } from '../../src/testing/app-session.ts';
import { sandboxControl } from '../../src/testing/sandbox-control.ts';
import { startProcess } from './processes.ts';
import { tell } from './rows.ts';

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } });
const runs = Number(values.runs);
const apiKey = 'bench-key';
const intervalSeconds = 2;

const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-bench-'));
const command = (name: string) => new URL(`../../src/commands/${name}.ts`, import.meta.url);
const sandbox = await startProcess(
  command('sandbox'),
  'sandbox',
  ['--port', '0', '--seed', 'none', '--data', join(folder, 'sandbox')],
  { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
);
const app = startProcess(command('app'), 'app', [], {
  PLATFORM_URL: sandbox.url,
  PLATFORM_API_KEY: apiKey,
  APP_SECRET: 'x'.repeat(32),
  DATA_DIR: join(folder, 'app'),
  PORT: '0',
  POLL_INTERVAL_MS: String(intervalSeconds * 1_000),
  LOG_LEVEL: 'error',
});
const control = sandboxControl({ url: sandbox.url });
const waits: number[] = [];
const steps: number[] = [];
try {
  const { url } = await app;
  for (let i = 0; i < runs; i++) {
    const { launchId, launchUrl } = await control.launch(`${url}/launch`);
    const session = await openLaunch(launchUrl);
    const { id } = await session.startRun({ stepId: 'ndvi', parameters: {}, input: { type: 'synthetic', size: 256 } });
    const reached = async (state: string) => {
      for (;;) {
        const run = await session.run(id);
        if (run.state === state) return run;
        if (run.isFinal) throw new Error(`the run ended as ${run.state}: ${run.failure?.message}`);
        await sleep(50);
      }
    };
    const { operationId } = await reached('AWAITING_APPROVAL');
    if (!operationId) throw new Error('the run waits for an operation that it does not name');
    // At any time between two polls, evenly: chance would move the mean.
    await sleep(((i + 0.5) / runs) * intervalSeconds * 1_000);
    const approvedAt = Date.now();
    await control.approve(operationId);
    const { history } = await reached('COMPLETED');
    const at = (state: string) => Date.parse(history.find((one) => one.state === state)?.at ?? '');
    const begun = (await control.trace(launchId)).find(({ endpoint }) => endpoint === 'upload.initiate')!;
    const stepSeconds = (at('UPLOADING') - at('PROCESSING')) / 1_000;
    steps.push(stepSeconds);
    waits.push((Date.parse(begun.at) - approvedAt) / 1_000 - stepSeconds);
  }
} finally {
  await app.then((one) => one.stop()).catch(() => {});
  await sandbox.stop();
  await rm(folder, { recursive: true, force: true });
}
const mean = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
console.log(
  `${runs} approvals: the upload began after ${Math.min(...waits).toFixed(2)} to ${Math.max(...waits).toFixed(2)} s, and the ${mean(steps).toFixed(2)} s of the step`,
);
tell([
  {
    what: `from the approval until the upload begins, less the time of the step: the mean of ${runs}`,
    unit: 's',
    ours: [mean(waits)],
    peer: { name: 'the interval of the polls', values: [intervalSeconds] },
    goal: { most: 0.6 },
  },
  {
    what: 'NDVI of 256 x 256 pixels, from PROCESSING to UPLOADING: the start of its child process, the step, its digests and its picture',
    unit: 's',
    ours: steps,
    peer: null,
    goal: { most: 1 },
  },
]);
