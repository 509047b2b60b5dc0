/** Runs of an app that wait for approval: for benches of what waiting costs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { trialRun } from '../../src/commands/trial-run.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import type { ProcessOptions } from './processes.ts';
import { startServers, type Servers } from './servers.ts';

const trial = trialRun(await loadMyApp(), 64);
const launchCount = 20;
export const intervalMs = 3_000;

interface Launched {
  readonly launchId: string;
  readonly token: string;
  readonly launchUrl: string;
}
export interface Waiting extends Servers {
  readonly launches: readonly Launched[];
  readonly operations: readonly { readonly operationId: string; readonly launchId: string }[];
}

/** Settings of `startWaiting`. */
interface WaitingRuns {
  readonly folder: string;
  readonly runs: number;
  /** Further settings of the app. */
  readonly env?: Readonly<Record<string, string>>;
  /** Starts runs of all launches at once, which leaves the app a larger heap. */
  readonly isHasty?: boolean;
}

/** Starts `runs` runs and waits until their operations exist. */
export async function startWaiting(
  { folder, runs, env = {}, isHasty = false }: WaitingRuns,
  options: ProcessOptions = {},
): Promise<Waiting> {
  const waiting = { RUNS_PER_USER: String(runs), POLL_INTERVAL_MS: String(intervalMs), ...env };
  const servers = await startServers({ folder, env: waiting }, options);
  const { control } = servers;
  const launches = await Promise.all(
    Array.from({ length: launchCount }, () => control<Launched>('launches', { appId: 'bench' })),
  );
  async function startRuns({ launchUrl }: Launched): Promise<void> {
    const session = await openLaunch(launchUrl);
    for (let i = 0; i < runs / launchCount; i++) await session.startRun(trial);
  }
  if (isHasty) await Promise.all(launches.map(startRuns));
  else for (const launch of launches) await startRuns(launch);
  const operations: { operationId: string; launchId: string }[] = [];
  for (const { launchId } of launches) {
    const asked = async () =>
      (await control<{ operations: { operationId: string }[] }>(`launches/${launchId}`)).operations;
    let found = await asked();
    for (; found.length < runs / launchCount; found = await asked()) await sleep(500);
    operations.push(...found.map(({ operationId }) => ({ operationId, launchId })));
  }
  return { ...servers, launches, operations };
}
