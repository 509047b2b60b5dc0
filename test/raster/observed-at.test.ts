/** Acquisition times in the metadata of files. */
import gdal from 'gdal-async';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { observedAtOf } from '../../src/raster/observed-at.ts';

// A time without a zone is UTC, whatever the time zone of the machine.
beforeAll(() => void vi.stubEnv('TZ', 'America/New_York'));
afterAll(() => void vi.unstubAllEnvs());

const timeOf = (written: string, ofItem: string | null = null) => {
  const dataset = gdal.open('', 'w', 'MEM', 1, 1, 1, 'Byte');
  dataset.setMetadata({ TIFFTAG_DATETIME: written });
  const time = observedAtOf(dataset, ofItem);
  dataset.close();
  return time === null ? null : new Date(time).toISOString();
};

test.each([
  ['2013:04:02 15:31:02', '2013-04-02T15:31:02.000Z'],
  ['2013-04-02T15:31:02Z', '2013-04-02T15:31:02.000Z'],
  ['2013-04-02 15:31:02.5', '2013-04-02T15:31:02.500Z'],
  ['2013-04-02T15:31:02.0251234Z', '2013-04-02T15:31:02.025Z'],
  ['2013-04-02T15:31:02+02:00', '2013-04-02T13:31:02.000Z'],
  [' 2013-04-02 ', '2013-04-02T00:00:00.000Z'],
  ['2013-13-02', null],
  ['last summer', null],
])('%j', (written, time) => {
  expect(timeOf(written)).toBe(time);
});

test('the date of the item takes precedence', () => {
  expect(timeOf('2013-04-02', '2020-01-01T00:00:00Z')).toBe('2020-01-01T00:00:00.000Z');
});
