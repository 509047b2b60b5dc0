import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUpLater } from '../cleanup.ts';

/** The one thing that an app does wrong; null for one that does nothing wrong. */
export const appFaults = [
  'polls-too-early',
  'polls-on-after-approved',
  'uploads-before-approval',
  'uploads-before-it-has-read-approved',
  'uploads-after-expiry',
  'chunks-out-of-order',
  'completes-early',
  'changes-the-key-midway',
  'reuses-a-token-in-another-launch',
  'goes-on-with-the-old-token',
] as const;
export type AppFault = (typeof appFaults)[number];

const chunkBytes = 1_000;

/** A small app that begins at launch and knows nothing of the kit. It ignores what its fault is answered. Gives its launch address. */
export async function startFaultyApp(
  itsFault: AppFault | null,
  platform: { url: string; apiKey: string },
  /** Before these it behaves: people that it knows from the published plan. Default: nobody. */
  behavesBefore: readonly string[] = [],
): Promise<string> {
  const stop = new AbortController();
  let firstToken: string | null = null;
  const server = createServer((req, res) => {
    const token = new URL(req.url ?? '/', 'http://app').searchParams.get('token');
    res.end('started');
    if (token === null) return;
    firstToken ??= token;
    work(token).catch(() => {}); // the certifier sees what did not come
  });

  async function call(
    method: string,
    path: string,
    body?: object | FormData,
  ): Promise<{ status: number; body: Record<string, string> }> {
    const isForm = body instanceof FormData;
    const response = await fetch(`${platform.url}/public/external-app${path}`, {
      method,
      headers: { 'X-API-KEY': platform.apiKey, ...(body && !isForm ? { 'content-type': 'application/json' } : {}) },
      body: isForm ? body : body ? JSON.stringify(body) : null,
      signal: stop.signal,
    });
    return { status: response.status, body: (await response.json().catch(() => ({}))) as Record<string, string> };
  }

  async function work(launched: string): Promise<void> {
    let token = launched;
    const { name = '' } = (await call('GET', `/user/${token}/detail`)).body;
    const fault = behavesBefore.includes(name) ? null : itsFault;
    let polls = 0;
    // Only the first polls come too early. Faster ones later would come before a recorded approval.
    const pause = () =>
      sleep(fault === 'polls-too-early' && (polls += 1) <= 2 ? 100 : 2_100, undefined, { signal: stop.signal });
    const { operationId } = (await call('POST', `/operation/${token}`, { name: 'faulty' })).body;
    const ask = (by: string) => call('GET', `/operation/${by}?operationId=${operationId}`);
    if (fault === 'uploads-before-approval')
      await call('POST', `/file/${token}/upload/initiate`, { operationId, fileName: 'a.bin' });
    if (fault === 'uploads-before-it-has-read-approved') {
      await sleep(1_500, undefined, { signal: stop.signal });
      return upload(token, operationId!, fault);
    }
    for (;;) {
      await pause();
      if (fault === 'reuses-a-token-in-another-launch' && firstToken !== launched) await ask(firstToken!);
      const answer = await ask(token);
      if (answer.status === 403) {
        token = (await call('POST', `/token/${token}/renew`)).body['token'] ?? token;
        if (fault === 'goes-on-with-the-old-token' && token !== launched) {
          await ask(token);
          token = launched;
        }
        continue;
      }
      const { status } = answer.body;
      if (status === 'REQUESTED') continue;
      // Before the upload, because the certifier judges soon after it.
      if (fault === 'polls-on-after-approved' && status === 'APPROVED') await pollOn(ask, token, pause);
      if (status === 'APPROVED' || (status === 'EXPIRED' && fault === 'uploads-after-expiry'))
        await upload(token, operationId!, fault);
      return;
    }
  }

  async function pollOn(
    ask: (by: string) => Promise<unknown>,
    token: string,
    pause: () => Promise<unknown>,
  ): Promise<void> {
    // On a busy machine the referee does not count an answer that took long.
    for (let i = 0; i < 5; i++) {
      await pause();
      await ask(token);
    }
  }

  async function upload(token: string, operationId: string, fault: AppFault | null): Promise<void> {
    const initiate = () => call('POST', `/file/${token}/upload/initiate`, { operationId, fileName: 'a.bin' });
    let initiated = await initiate();
    // On a busy machine the approval may come later than it guesses.
    while (fault === 'uploads-before-it-has-read-approved' && initiated.status !== 200) {
      await sleep(500, undefined, { signal: stop.signal });
      initiated = await initiate();
    }
    const { uploadId, key } = initiated.body;
    const complete = (sent = key) =>
      call('POST', `/file/${token}/upload/complete`, {
        uploadId,
        key: sent,
        fileSize: 3 * chunkBytes,
        sourceType: 'UNKNOWN',
      });
    for (const n of fault === 'chunks-out-of-order' ? [1, 3, 2, 3] : [1, 2, 3]) {
      const form = new FormData();
      const sentKey = fault === 'changes-the-key-midway' && n > 1 ? 'another-key' : key;
      for (const [name, value] of Object.entries({ uploadId, key: sentKey, partNumber: n }))
        form.append(name, String(value));
      form.append('file', new Blob([new Uint8Array(chunkBytes).fill(n)]), 'part');
      if (fault === 'completes-early' && n === 3) await complete();
      await call('POST', `/file/${token}/upload/chunk`, form);
    }
    await complete(fault === 'changes-the-key-midway' ? 'another-key' : key);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(async () => {
    stop.abort();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/launch`;
}
