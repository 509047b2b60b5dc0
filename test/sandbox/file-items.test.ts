/** The date of a delivered file's item. */
import { expect, test } from 'vitest';
import { itemOfFile } from '../../src/sandbox/files/file-items.ts';
import type { FileFacts } from '../../src/sandbox/inspect/facts.ts';
import type { FileRecord } from '../../src/sandbox/uploads/files.ts';
import { footprintOfBox } from '../../src/raster/footprint.ts';

const createdAtMs = Date.parse('2026-01-01T00:00:00Z');
const dateOf = (acquisitionDate: string | undefined, acquiredAt: string | null) => {
  const file: FileRecord = {
    ...{ id: 'f', userId: 'u', launchId: null, originalName: 'a.tif', size: 1, sourceType: 'UNKNOWN', blob: 'b' },
    ...{ status: 'COMPLETED', reason: null, mediaType: 'image/tiff', sha256: 's', facts: null, createdAtMs },
    properties: acquisitionDate === undefined ? {} : { acquisitionDate },
  };
  const facts: FileFacts = {
    ...{ kind: 'raster', mediaType: 'image/tiff', sha256: 's', acquiredAt },
    footprint: footprintOfBox([10, 50, 11, 51]),
  };
  const uploader = { id: 'u', email: 'e', name: 'n', organization: 'o' };
  return new Date(itemOfFile(file, facts, uploader, 'c', createdAtMs)!.datetimeMs).toISOString().slice(0, 10);
};

test('names the organization of the uploader, or the uploader without one', () => {
  const file = { id: 'f', userId: 'u', launchId: null, originalName: 'a.tif', size: 1, sourceType: 'UNKNOWN', blob: 'b', status: 'COMPLETED', reason: null, mediaType: null, sha256: null, facts: null, properties: {}, createdAtMs } as const; // oxfmt-ignore
  const facts: FileFacts = { kind: 'raster', mediaType: 'image/tiff', sha256: 's', acquiredAt: null, footprint: footprintOfBox([10, 50, 11, 51]) }; // oxfmt-ignore
  const sourceOf = (organization: string) =>
    itemOfFile(file, facts, { id: 'u', email: 'e', name: 'Ada', organization }, 'c', 0)!.properties['platform:source'];
  expect([sourceOf('Institute'), sourceOf('')]).toEqual(['Institute', 'Ada']);
});

test.each([
  ['the uploader, where it says one', '2002-07-01', '2010-01-01T00:00:00Z', '2002-07-01'],
  ['the file, where the uploader says none', undefined, '2010-01-01T00:00:00Z', '2010-01-01'],
  ['the upload, where neither says one', undefined, null, '2026-01-01'],
])('comes from %s', (_, acquisitionDate, acquiredAt, date) => {
  expect(dateOf(acquisitionDate, acquiredAt)).toBe(date);
});
