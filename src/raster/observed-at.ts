/** Only for child processes. Reads the acquisition time of a raster. */
import type gdal from 'gdal-async';
import { metadataOf } from './metadata-of.ts';

/** Metadata keys of the acquisition time, most reliable first. `TIFFTAG_DATETIME` may be the processing time. */
const sources = [
  { domain: 'IMAGERY', key: 'ACQUISITIONDATETIME' },
  { domain: '', key: 'ACQUISITIONDATETIME' },
  { domain: '', key: 'TIFFTAG_DATETIME' },
] as const;

/** Returns the acquisition time in ms since 1970: the item's `datetime` (ISO 8601), or else the file's metadata, in UTC if they have no time zone. Null if neither has a valid time. */
export function observedAtOf(dataset: gdal.Dataset, ofItem: string | null): number | null {
  if (ofItem !== null) return Date.parse(ofItem);
  for (const { domain, key } of sources) {
    const written: unknown = metadataOf(dataset, domain)[key];
    const time = typeof written === 'string' ? timeOf(written) : NaN;
    if (!Number.isNaN(time)) return time;
  }
  return null;
}

/** Parses `2013:04:02 15:31:02` (TIFF), `2013-04-02T15:31:02Z` and `2013-04-02 15:31:02` (GDAL). NaN for other text. */
function timeOf(text: string): number {
  const parts = /^(\d{4})[:-](\d\d)[:-](\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)?)?$/.exec(
    text.trim(),
  );
  if (!parts) return NaN;
  const [, year, month, day, time = '00:00:00', zone = 'Z'] = parts;
  return Date.parse(`${year}-${month}-${day}T${time}${zone}`);
}
