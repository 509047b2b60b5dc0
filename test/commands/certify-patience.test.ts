/** The certifier's patience: what does not come is the app's fault on an idle machine, and no evidence on a busy one. */
import { describe, expect, test } from 'vitest';
import { isBusy, MachineLoad, loadText } from '../../src/commands/certify/machine.ts';
import { runPlan } from '../../src/commands/certify/run-plan.ts';
import { scenarios } from '../../src/commands/certify/scenarios.ts';
import { startSandbox } from '../support/sandbox.ts';
import { startScriptedServer } from '../support/scripted-server.ts';

describe('the load of a machine', () => {
  test('is the mean time of a unit of work as a multiple of the least that was ever seen', () => {
    const load = new MachineLoad();
    expect([load.slowdown, isBusy(load)]).toEqual([1, false]);
    load.note({ meanMs: 1.1, leastMs: 1 });
    expect([load.slowdown, isBusy(load)]).toEqual([1.1, false]);
    load.note({ meanMs: 8, leastMs: 2 });
    expect([load.slowdown, isBusy(load), loadText(load)]).toEqual([
      8,
      true,
      'a program takes 8.0 times as long as on an idle one',
    ]);
    load.note({ meanMs: 1, leastMs: 1 });
    expect(isBusy(load)).toBe(false);
  });

  test('is measured in a thread', async () => {
    const { load, ready, stop } = MachineLoad.watch();
    await ready;
    expect([load.isMeasured, load.problem]).toEqual([true, null]);
    expect(load.slowdown).toBeGreaterThanOrEqual(1);
    await stop();
  });
});

/** An app that answers the launch and does nothing. */
const page = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok';

const silent = async () => (await startScriptedServer('')).url;

async function reportOf(launchUrl: string, slowdown: number, patienceMs = 400) {
  const sandbox = await startSandbox();
  const beganAt = performance.now();
  const [report] = await runPlan(
    scenarios.filter(({ id }) => id === 'approve-at-once'),
    {
      ...{ sandbox, launchUrl, patienceMs, machine: { slowdown } },
      ...({ launchMode: 'query', tokenField: 'token', startRequest: null } as const),
      signal: new AbortController().signal,
      onStatus: () => {},
    },
  );
  return { report: report!, tookMs: performance.now() - beganAt };
}

test('on an idle machine, an app that does nothing fails, and the message says what its last call was', async () => {
  const { report } = await reportOf(`${(await startScriptedServer(page)).url}/launch`, 1);
  expect([report.status, report.result]).toEqual(['FINISHED', 'FAILED']);
  expect(report.missing?.message).toMatch(
    /^the app created no operation within \d+ s; it made no call after the launch$/,
  );
});

test('on a busy machine it gets more time, and then its scenario is interrupted', async () => {
  const { report, tookMs } = await reportOf(`${(await startScriptedServer(page)).url}/launch`, 4);
  expect([report.status, report.result, report.missing?.severity]).toEqual(['INTERRUPTED', 'NOT_EXERCISED', 'warning']);
  expect(report.missing?.message).toMatch(
    /This proves nothing, because the machine was too busy: a program takes [34]\.\d times as long as on an idle one$/,
  );
  expect(tookMs).toBeGreaterThanOrEqual(4 * 400);
});

test.each([
  ['refuses connections, busy', () => 'http://127.0.0.1:9', 4, 'FINISHED'],
  ['accepts them and does not answer, idle', silent, 1, 'FINISHED'],
  ['accepts them and does not answer, busy', silent, 4, 'INTERRUPTED'],
])('an app that %s', async (_name, origin, slowdown, status) => {
  const { report } = await reportOf(`${await origin()}/launch`, slowdown);
  expect([report.status, report.missing?.message]).toEqual([
    status,
    expect.stringContaining('the app does not answer at http://127.0.0.1:') as string,
  ]);
});
