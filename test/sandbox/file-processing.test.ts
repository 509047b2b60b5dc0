/** Inspection of uploads: one process for the files of one user, and another for those of the next. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { FileProcessing } from '../../src/sandbox/files/file-processing.ts';
import type { FileRecord, Files } from '../../src/sandbox/uploads/files.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';

test('no process inspects files of two users', async () => {
  const folder = await testFolder();
  const blobDir = join(folder, 'blobs');
  await mkdir(blobDir);
  const record = (id: string, userId: string) =>
    ({ id, userId, blob: id, originalName: `${id}.pdf`, sourceType: 'PDF' }) as FileRecord;
  const waiting = [record('1', 'ada'), record('2', 'ada'), record('3', 'ben'), record('4', 'ada'), record('5', 'ben')];
  for (const { blob } of waiting) await writeFile(join(blobDir, blob), '%PDF');
  const inspected = new Map<string, number>();
  let isBusy = false;
  const files = {
    // One at a time, so that a process is free for each file.
    takeQueued: () => (isBusy ? null : ((isBusy = waiting.length > 0), waiting.shift() ?? null)),
    complete(id: string, facts: { readonly inspected?: number }) {
      inspected.set(id, facts.inspected ?? 0);
      isBusy = false;
      processing.wake();
    },
    fail: (id: string, reason: string) => expect.fail(`${id}: ${reason}`),
  } as unknown as Files;
  const processing = new FileProcessing({
    files,
    confinement: await testConfinement(),
    ...{ blobDir, overviewDir: folder, workDir: join(folder, 'work'), log: pino({ level: 'silent' }) },
    publish: () => {},
    job: new URL('../support/counting-inspect-job.ts', import.meta.url),
  });
  cleanUpLater(() => processing.close());
  processing.wake();
  await expect.poll(() => inspected.size, { timeout: 60_000 }).toBe(5);
  expect(Object.fromEntries(inspected)).toEqual({ 1: 1, 2: 2, 3: 1, 4: 3, 5: 2 });
});
