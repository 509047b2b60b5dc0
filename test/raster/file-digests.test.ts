/** SHA-256 of small files, which the main thread hashes, and of large ones, which a thread hashes. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileDigests } from '../../src/child/index.ts';
import { testFolder } from '../support/folders.ts';
import { cleanUpLater } from '../support/cleanup.ts';

test.each([
  ['small files', [0, 3, 1_500_000]],
  ['a large batch', [9_000_000, 10]],
])('%s: digests and sizes in the order of the paths', async (_what, sizes) => {
  const folder = await testFolder();
  const files = sizes.map((size, i) => ({ path: join(folder, String(i)), bytes: Buffer.alloc(size, `part ${i}`) }));
  for (const { path, bytes } of files) await writeFile(path, bytes);
  const digests = new FileDigests();
  cleanUpLater(() => digests.close());
  const expected = files.map(({ bytes }) => ({
    sizeBytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }));
  expect(await digests.of(files.map(({ path }) => path))).toEqual(expected);
  expect(await digests.ofLarge(files.map(({ path }) => path))).toEqual(expected);
});

test('a missing file rejects with the error of the system, and the next batch is hashed', async () => {
  const path = join(await testFolder(), 'there');
  await writeFile(path, 'x');
  const digests = new FileDigests();
  cleanUpLater(() => digests.close());
  for (const hash of [digests.of.bind(digests), digests.ofLarge.bind(digests)]) {
    await expect(hash([`${path}.not`])).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await hash([path])).toHaveLength(1);
  }
});
