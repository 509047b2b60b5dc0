/** A disk that fills up, and has room again: every call says so, nothing is lost, and nobody has to restart anything. */
import { rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mountSmallDisk } from '../../lab/drill/small-disk.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { completeFile, finalStatus, generateUpload, sendFileChunk, uploadDirectly } from '../support/files.ts';
import { makeFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { openUpload, sendChunk, sendComplete, someBytes, startSandbox } from '../support/sandbox.ts';
import { needing, smallDisk } from '../support/needs.ts';

const folder = await makeFolder();
// Mounting is the superuser's; elsewhere this is skipped, visibly.
const disk = mountSmallDisk(folder, 160);
cleanUpLater(async () => {
  disk?.remove();
  await rm(folder, { recursive: true, force: true });
});

describe('a disk that is full', needing(smallDisk(disk)), () => {
  test("507 for files, the spec's 500 for apps, and well again by itself", async () => {
    const sandbox = await startSandbox({ dataDir: folder });
    const launch = await sandbox.launch();
    const upload = await openUpload(sandbox, 'a.tif', launch);
    const { token, operationId } = upload;
    const bytes = geoTiff({ width: 64, height: 64, value: (x, y) => x + y });
    const direct = () => uploadDirectly(sandbox, bytes, 'b.tif', 'UNKNOWN');
    const chunk = () => sendChunk(sandbox, upload, 1, bytes);

    const before = await direct();
    await disk!.fill();
    const refused = [
      await direct(),
      await sandbox.request('POST', '/sandbox/launches', { body: {} }),
      await chunk(),
      await sandbox.app('POST', `/operation/${token}`, { body: { name: 'During' } }),
    ];
    expect(refused.map(({ status, body }) => [status, body.code])).toEqual([
      [507, 'insufficient_storage'],
      [507, 'insufficient_storage'],
      [500, 'insufficient_storage'],
      [500, 'insufficient_storage'],
    ]);
    // Reading needs no room.
    expect((await sandbox.app('GET', `/operation/${token}?operationId=${operationId}`)).body.status).toBe('APPROVED');

    await disk!.empty();
    expect((await chunk()).status).toBe(200);
    const completed = await sendComplete(sandbox, upload, bytes.length);
    expect(completed.status).toBe(200);
    for (const fileId of [completed.body.fileId, before.body.fileId]) {
      expect(await finalStatus(sandbox, fileId)).toBe('COMPLETED');
    }
    // The answer that was given while there was no room to note it is in the trace.
    expect(
      (await sandbox.trace(launch.launchId)).filter(
        ({ endpoint, delivered }) => endpoint === 'operation.status' && delivered,
      ),
    ).toHaveLength(1);
  });

  test('at the completion, for a part that came before its turn: nothing is lost, and the upload completes when there is room', async () => {
    const sandbox = await startSandbox({ dataDir: folder, freeBytes: async () => 2 ** 40 });
    const upload = await generateUpload(sandbox);
    const [first, second] = [someBytes(1_000), someBytes(8 * 1024 * 1024, 2)];
    expect((await sendFileChunk(sandbox, upload, 2, second)).status).toBe(200);
    await disk!.fill();
    const filler = join(folder, 'filler');
    // Room for the first part and the database, and not for another copy of the second.
    await truncate(filler, (await stat(filler)).size - 3 * 1024 * 1024);
    expect((await sendFileChunk(sandbox, upload, 1, first)).status).toBe(200);
    const size = first.length + second.length;
    const refused = await completeFile(sandbox, upload, size);
    expect([refused.status, refused.body.code]).toEqual([507, 'insufficient_storage']);

    await disk!.empty();
    const completed = await completeFile(sandbox, upload, size);
    expect([completed.status, completed.body.size]).toEqual([200, size]);
  });
});
