/** The date and the provider of a delivered file's item. */
import { expect, test } from 'vitest';
import { itemOfFile } from '../../src/sandbox/files/file-items.ts';
import type { FileFacts } from '../../src/sandbox/inspect/facts.ts';
import type { FileRecord } from '../../src/sandbox/uploads/files.ts';
import { footprintOfBox } from '../../src/raster/footprint.ts';

const createdAtMs = Date.parse('2026-01-01T00:00:00Z');

function itemWith({
  acquisitionDate,
  acquiredAt = null,
  organization = 'Institute',
}: {
  acquisitionDate?: string;
  acquiredAt?: string | null;
  organization?: string;
}) {
  const file: FileRecord = {
    ...{ id: 'f', userId: 'u', launchId: null, originalName: 'a.tif', size: 1, sourceType: 'UNKNOWN', blob: 'b' },
    ...{ status: 'COMPLETED', reason: null, mediaType: 'image/tiff', sha256: 's', facts: null, createdAtMs },
    properties: acquisitionDate === undefined ? {} : { acquisitionDate },
  };
  const facts: FileFacts = {
    ...{ kind: 'raster', mediaType: 'image/tiff', sha256: 's', acquiredAt },
    footprint: footprintOfBox([10, 50, 11, 51]),
  };
  return itemOfFile(file, facts, { id: 'u', email: 'e', name: 'Ada', organization }, 'c', createdAtMs)!;
}

test.each([
  ['the uploader', { acquisitionDate: '2002-07-01', acquiredAt: '2010-01-01T00:00:00Z' }, '2002-07-01'],
  ['the file, if the uploader sent none', { acquiredAt: '2010-01-01T00:00:00Z' }, '2010-01-01'],
  ['the upload, if there is no other', {}, '2026-01-01'],
])('the date is that of %s', (_, dates, date) => {
  expect(new Date(itemWith(dates).datetimeMs).toISOString().slice(0, 10)).toBe(date);
});

test.each([
  ['Institute', 'Institute'],
  ['', 'Ada'],
])('the provider of a user of the organization %j is %s', (organization, provider) => {
  expect(itemWith({ organization }).properties['platform:source']).toBe(provider);
});
