/** The check for video gives a verdict on any damaged file. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KitError } from '../../src/contract/index.ts';
import { inspectVideo } from '../../src/sandbox/inspect/video.ts';
import { testFolder } from '../support/folders.ts';
import { matroska, mp4, transportStream } from '../support/other-files.ts';

const verdictOf = async (path: string, bytes: Uint8Array): Promise<string> => {
  await writeFile(path, bytes);
  try {
    await inspectVideo({ path, workFolder: dirname(path), sourceType: 'FULL_MOTION_VIDEO' });
    return 'video';
  } catch (error) {
    if (error instanceof KitError) return 'none';
    throw error;
  }
};

test.each([
  ['MP4', mp4()],
  ['a transport stream', transportStream()],
  ['Matroska', matroska()],
])('a damaged file gets a verdict: %s', async (_name, whole) => {
  const path = join(await mkdtemp(join(await testFolder(), 'video-')), 'file');
  expect(await verdictOf(path, whole)).toBe('video');
  const change = fc.record({ at: fc.nat(whole.length - 1), bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 4 }), fc.nat(whole.length), async (changes, length) => {
      const damaged = Buffer.from(whole);
      for (const { at, bytes } of changes) damaged.set(bytes.subarray(0, damaged.length - at), at);
      expect(['video', 'none']).toContain(await verdictOf(path, damaged.subarray(0, length)));
    }),
    { numRuns: 400 },
  );
});

test('a Matroska segment of unknown size without a track is no video', async () => {
  const path = join(await testFolder(), 'unknown-size');
  const header = [0x1a, 0x45, 0xdf, 0xa3, 0x8b, 0x42, 0x82, 0x88, ...Buffer.from('matroska')];
  expect(
    await verdictOf(path, Buffer.from([...header, 0x18, 0x53, 0x80, 0x67, 0xff, ...new Array<number>(300).fill(0)])),
  ).toBe('none');
});
