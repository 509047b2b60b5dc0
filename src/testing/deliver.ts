import { setTimeout as sleep } from 'node:timers/promises';
import type { RunView } from '../app/runs/run-view.ts';
import { KitError } from '../contract/index.ts';
import { createPlatformClient } from '../platform-client/index.ts';
import { openLaunch } from './app-session.ts';
import type { RunningApp } from './start-app.ts';
import type { RunningSandbox } from './start-sandbox.ts';

/** A wanted run: the body of the app's `POST api/runs`. */
export interface WantedRun {
  readonly stepId: string;
  readonly parameters?: object;
  /** Default: a raster of 64 pixels a side that code makes, of the kind that the step declares. */
  readonly input?: object;
  /** Time limit for a run once it is approved, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number;
}

/** The end of a run that `deliver` has driven, with the bytes of its files. */
export interface Delivered {
  readonly run: RunView;
  readonly launchId: string;
  /** Bytes that the platform returns for the file: the bytes that a user would download. */
  readonly bytes: Uint8Array;
}

const lookEveryMs = 100;

/**
 * Takes one run through the whole flow: launches the app, asks for the run, approves, waits for its end, and fetches the
 * file back from the platform. Throws `KitError` where the run does not complete, with what its user would read.
 */
export async function deliver(
  platform: RunningSandbox,
  app: Pick<RunningApp, 'launchUrl'>,
  { timeoutMs = 60_000, ...wanted }: WantedRun,
): Promise<Delivered> {
  const { launchId, launchUrl } = await platform.launch(app.launchUrl);
  const session = await openLaunch(launchUrl);
  let run = await session.startRun({ input: { type: 'synthetic', size: 64 }, ...wanted });
  await platform.approve({ launchId });
  const giveUpAt = performance.now() + timeoutMs;
  while (!run.isFinal) {
    if (performance.now() > giveUpAt)
      throw new KitError('run_not_completed', `the run is ${run.state} after ${timeoutMs} ms`);
    await sleep(lookEveryMs);
    run = await session.run(run.id);
  }
  if (run.state !== 'COMPLETED' || !run.file?.fileId)
    throw new KitError(
      run.failure?.code ?? 'run_not_completed',
      `the run ended ${run.state}: ${run.failure?.message ?? ''}`,
    );
  // The app's own key need not be allowed to read files.
  const { id: keyId, apiKey } = await platform.createKey(['files_admin']);
  const client = createPlatformClient({ baseUrl: platform.url, apiKey, profile: platform.profile });
  try {
    const response = await fetch(await client.getDownloadUrl(run.file.fileId));
    if (!response.ok)
      throw new KitError('not_delivered', `the platform answered ${response.status} to the download of the file`);
    return { run, launchId, bytes: new Uint8Array(await response.arrayBuffer()) };
  } finally {
    client.close();
    await platform.revokeKey(keyId);
  }
}
