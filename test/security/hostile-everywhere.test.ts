/** Hostile children in the whole sandbox and the whole app, as deployed: what lies beside them stays, and other calls are answered. */
import { expect, test } from 'vitest';
import { launchApp, startApp } from '../support/app.ts';
import { downloaded, finalStatus, processed, uploadDirectly } from '../support/files.ts';
import hostileApp from '../support/hostile-deeds-app.ts';
import { deeds } from '../support/hostile-job.ts';
import { confined, fileNeeds } from '../support/needs.ts';
import { longestOwnWorkMs } from '../support/own-work.ts';
import { startSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';
import { victimTree } from '../support/victim-tree.ts';

fileNeeds(await confined());

const options = { timeout: 900_000, tags: [onlyInAll] };
const honest = 'is honest';
/** The swap is a race, so it is tried several times. */
const acts = [...Object.keys(deeds), ...Array.from({ length: 5 }, () => 'swaps a folder for a link')];
/** Deeds that a server must notice by itself. */
const noticed = Object.keys(deeds).filter((deed) => /^(sends|hides|makes) /.test(deed));

test('uploads that take the inspection over', options, async () => {
  const { folder: victim, digest, before } = await victimTree();
  const sandbox = await startSandbox({
    inspection: {
      job: new URL('../support/hostile-inspect-job.ts', import.meta.url),
      limits: { timeoutMs: 20_000, diskBytes: 50e6 },
    },
  });
  const upload = (deed: string, of: string) => new TextEncoder().encode(JSON.stringify({ deed, victim: of }));
  const kept = upload(honest, '');
  const { fileId: first } = await processed(sandbox, kept, 'first.bin', 'UNKNOWN');
  const workMs = await longestOwnWorkMs(async () => {
    // The sandbox's own data is a victim too.
    const ids = await Promise.all(
      acts.map(async (deed, i) => {
        const bytes = upload(deed, i % 2 === 0 ? victim : sandbox.dataDir);
        return (await uploadDirectly(sandbox, bytes, `${i}.bin`, 'UNKNOWN')).body.fileId;
      }),
    );
    for (const [i, id] of ids.entries()) {
      const status = await finalStatus(sandbox, id);
      if (noticed.includes(acts[i]!)) expect(status, acts[i]).toBe('FAILED');
    }
  });
  expect(workMs).toBeLessThan(1_000);
  expect(await processed(sandbox, kept, 'last.bin', 'UNKNOWN')).toMatchObject({ status: 'COMPLETED' });
  expect(await downloaded(sandbox, first)).toEqual(Buffer.from(kept));
  expect(await digest()).toBe(before);
});

test('approved runs whose step is taken over', options, async () => {
  const { folder: victim, digest, before } = await victimTree();
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, {
    definition: hostileApp,
    env: { STEP_TIMEOUT_MS: '20000', STEP_DISK_BYTES: '50000000' },
  });
  const { session } = await launchApp(sandbox, app);
  const run = async (deed: string, of: string) => {
    const { id } = await session.start({
      stepId: 'hostile',
      input: { type: 'synthetic', size: 64 },
      parameters: { deed, victim: of },
    });
    const { operationId } = await session.waitFor(id, 'AWAITING_APPROVAL');
    await sandbox.control('POST', `operations/${operationId}/approve`);
    return session.waitFor(id, 'COMPLETED', 'FAILED');
  };
  const workMs = await longestOwnWorkMs(() =>
    Promise.all(
      acts.map(async (deed, i) => {
        const { state } = await run(deed, i % 2 === 0 ? victim : app.dataDir);
        if (noticed.includes(deed)) expect(state, deed).toBe('FAILED');
      }),
    ),
  );
  expect(workMs).toBeLessThan(1_000);
  expect((await run(honest, '')).state).toBe('COMPLETED');
  expect(await digest()).toBe(before);
});
