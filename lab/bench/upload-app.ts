/**
 * Uploads through the app into the sandbox, both as processes of their own, beside a plain `cp` of the
 * same bytes on the same disk. Timed from the first call of the upload until the file can be downloaded.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunView } from '../../src/app/runs/run-view.ts';
import { createPlatformClient } from '../../src/platform-client/index.ts';
import { openLaunch } from '../../src/testing/app-session.ts';
import { sandboxControl } from '../../src/testing/sandbox-control.ts';
import { startProcess } from './processes.ts';

const apiKey = 'bench-key';
/** Interval between looks, in milliseconds: the same as for the app's own page. */
const watchEveryMs = 1000;

export interface UploadResult {
  readonly mebibytes: number;
  readonly uploadSeconds: number;
  readonly cpSeconds: number;
  readonly completeMs: number;
  readonly appPeakMiB: number;
  readonly sandboxPeakMiB: number;
}

/** One upload of `mebibytes`, with fresh processes, in a folder of its own below `parent`. */
export async function benchUpload(mebibytes: number, parent: string): Promise<UploadResult> {
  const folder = await mkdtemp(join(parent, 'upload-bench-'));
  const sandbox = await startProcess(
    new URL('../../src/commands/sandbox.ts', import.meta.url),
    'sandbox',
    ['--port', '0', '--data', join(folder, 'sandbox')],
    { SANDBOX_API_KEY: apiKey, LOG_LEVEL: 'error' },
  );
  const app = await startProcess(new URL('./app.ts', import.meta.url), 'app', [], {
    PLATFORM_URL: sandbox.url,
    PLATFORM_API_KEY: apiKey,
    APP_SECRET: 'x'.repeat(32),
    DATA_DIR: join(folder, 'app'),
    PORT: '0',
    POLL_INTERVAL_MS: '2000',
    LOG_LEVEL: 'error',
  });
  const client = createPlatformClient({ baseUrl: sandbox.url, apiKey });
  try {
    const control = sandboxControl({ url: sandbox.url });
    const { launchId, launchUrl } = await control.launch(`${app.url}/launch`);
    const session = await openLaunch(launchUrl);
    const { id } = await session.startRun({
      stepId: 'big',
      parameters: { mebibytes },
      input: { type: 'synthetic', size: 64 },
    });
    const requested = await until(
      () => session.run(id),
      ({ state }) => state === 'AWAITING_APPROVAL',
    );
    await control.approve(requested.operationId ?? '');
    const done = await until(
      () => session.run(id),
      ({ isFinal }) => isFinal,
    );
    if (done.state !== 'COMPLETED' || !done.file?.fileId)
      throw new Error(`the run ended as ${done.state}: ${done.failure?.message}`);
    const asked = performance.now();
    const firstByte = await fetch(await client.getDownloadUrl(done.file.fileId), { headers: { range: 'bytes=0-0' } });
    if (firstByte.status !== 206) throw new Error(`the file cannot be downloaded: ${firstByte.status}`);
    const completedAt = Date.parse(done.history.at(-1)?.at ?? '');
    const downloadableAt = completedAt + performance.now() - asked;
    const peaks = { appPeakMiB: app.peakMiB(), sandboxPeakMiB: sandbox.peakMiB() };
    const calls = await control.trace(launchId);
    const call = (endpoint: string) => calls.find((one) => one.endpoint === endpoint)!;
    const [blob] = await readdir(join(folder, 'sandbox', 'blobs'));
    return {
      mebibytes,
      uploadSeconds: (downloadableAt - Date.parse(call('upload.initiate').at)) / 1000,
      cpSeconds: timeCp(join(folder, 'sandbox', 'blobs', blob!), join(folder, 'copy')),
      completeMs: call('upload.complete').durationMs,
      ...peaks,
    };
  } finally {
    client.close();
    await app.stop();
    await sandbox.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function until(read: () => Promise<RunView>, isThere: (run: RunView) => boolean): Promise<RunView> {
  for (;;) {
    const run = await read();
    if (isThere(run)) return run;
    await sleep(watchEveryMs);
  }
}

function timeCp(from: string, to: string): number {
  const began = performance.now();
  execFileSync('cp', ['--reflink=never', from, to]);
  return (performance.now() - began) / 1000;
}
