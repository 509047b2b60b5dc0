/** Only for child processes: when a raster was observed. */
import type gdal from 'gdal-async';

/** Metadata of a file that name its time, the most certain first. TIFF's own tag may be the time of processing. */
const sources = [
  { domain: 'IMAGERY', key: 'ACQUISITIONDATETIME' },
  { domain: '', key: 'ACQUISITIONDATETIME' },
  { domain: '', key: 'TIFFTAG_DATETIME' },
] as const;

/** Time in ms since 1970 by the item's `datetime` (ISO 8601), else by the metadata of the file, in UTC unless they say otherwise. Null if none can be read. */
export function observedAtOf(dataset: gdal.Dataset, ofItem: string | null): number | null {
  if (ofItem !== null) return Date.parse(ofItem);
  for (const { domain, key } of sources) {
    const written: unknown = (dataset.getMetadata(domain) as Record<string, unknown>)[key];
    const time = typeof written === 'string' ? timeOf(written) : NaN;
    if (!Number.isNaN(time)) return time;
  }
  return null;
}

/** `2013:04:02 15:31:02` (TIFF), `2013-04-02T15:31:02Z`, `2013-04-02 15:31:02` (GDAL). */
function timeOf(text: string): number {
  const parts = /^(\d{4})[:-](\d\d)[:-](\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)?)?$/.exec(
    text.trim(),
  );
  if (!parts) return NaN;
  const [, year, month, day, time = '00:00:00', zone = 'Z'] = parts;
  return Date.parse(`${year}-${month}-${day}T${time}${zone}`);
}
