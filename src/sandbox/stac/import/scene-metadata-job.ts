/** Runs in a child process: what a scene's metadata file says. */
import { open } from 'node:fs/promises';
import { DOMParser, onWarningStopParsing } from '@xmldom/xmldom';
import type { Job } from '../../../child/in-child.ts';
import { noMetadata, sceneMetadata, type SceneMetadata } from './scene-metadata.ts';

const maxBytes = 8 * 1024 * 1024;

/** Job: reads the file that it is lent by its content; null where it is no metadata of a scene. */
const job: Job<null, SceneMetadata | null> = async (_input, { files: [path = ''] }) => {
  const text = await readText(path);
  const read = text.trimStart().startsWith('<')
    ? fromSentinel(text)
    : text.trimStart().startsWith('{')
      ? fromStac(text)
      : fromLandsat(text);
  return read && sceneMetadata.parse(read);
};
export default job;

async function readText(path: string): Promise<string> {
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(Math.min(maxBytes, (await file.stat()).size));
    return buffer.toString('utf8', 0, (await file.read(buffer, 0, buffer.length, 0)).bytesRead);
  } finally {
    await file.close();
  }
}

/** Lines `NAME = value` in groups, of collection 1 (`SCENE_CENTER_TIME` and the like) and 2. */
function fromLandsat(text: string): Partial<SceneMetadata> | null {
  const values = new Map<string, string>();
  for (const [, name = '', quoted, bare] of text.matchAll(
    /^[ \t]*([A-Z][A-Z0-9_]*)[ \t]*=[ \t]*(?:"([^"\n]*)"|(\S+))[ \t\r]*$/gm,
  ))
    if (!values.has(name)) values.set(name, quoted ?? bare ?? '');
  const satellite = /^LANDSAT_?(\d)$/.exec(values.get('SPACECRAFT_ID') ?? '')?.[1];
  if (satellite === undefined) return null;
  const time = (values.get('SCENE_CENTER_TIME') ?? '00:00:00Z').replace(/(\.\d{3})\d*/, '$1');
  return {
    ...noMetadata,
    id: values.get('LANDSAT_PRODUCT_ID') ?? values.get('LANDSAT_SCENE_ID') ?? null,
    platform: `landsat-${satellite}`,
    instruments: (values.get('SENSOR_ID') ?? '')
      .toLowerCase()
      .split('_')
      .filter((name) => name !== ''),
    acquiredAtMs: instant(`${values.get('DATE_ACQUIRED')}T${time}`),
    cloudCover: within(values.get('CLOUD_COVER'), 0, 100),
    sunAzimuth: degrees(values.get('SUN_AZIMUTH')),
    sunElevation: within(values.get('SUN_ELEVATION'), -90, 90),
    scales: landsatScales(values),
    // Landsat marks fill by 0 in every product.
    nodata: 0,
    provider: 'U.S. Geological Survey',
  };
}

/** Reads scale and offset by band. The first value wins: level 2 files list surface reflectance and temperature before level 1. */
function landsatScales(values: ReadonlyMap<string, string>): SceneMetadata['scales'] {
  const scales: SceneMetadata['scales'] = {};
  for (const [name, text] of values) {
    const [, kind, band] = /^(REFLECTANCE|TEMPERATURE)_MULT_BAND_(?:ST_B)?(\d+)$/.exec(name) ?? [];
    if (kind === undefined) continue;
    const [scale, offset] = [Number(text), Number(values.get(name.replace('_MULT_', '_ADD_')) ?? NaN)];
    if (scale !== 0 && Number.isFinite(scale) && Number.isFinite(offset)) scales[`B${band}`] = { scale, offset };
  }
  return scales;
}

/** Sentinel-2 bands in the order of `band_id`. */
const sentinelBands = ['B01', 'B02', 'B03', 'B04', 'B05', 'B06', 'B07', 'B08', 'B8A', 'B09', 'B10', 'B11', 'B12'];

/** Reads the common divisor, and the offset of each band that products have since January 2022. */
function sentinelScales(document: ReturnType<DOMParser['parseFromString']>): SceneMetadata['scales'] {
  const all = (name: string) => [...document.getElementsByTagName(name)];
  const [quantification] = [...all('BOA_QUANTIFICATION_VALUE'), ...all('QUANTIFICATION_VALUE')];
  const divisor = Number(quantification?.textContent ?? NaN);
  if (!(divisor > 0)) return {};
  const offsets = [...all('BOA_ADD_OFFSET'), ...all('RADIO_ADD_OFFSET')];
  return Object.fromEntries(
    sentinelBands.map((band, i) => {
      const own = offsets.find((offset) => offset.getAttribute('band_id') === String(i));
      return [band, { scale: 1 / divisor, offset: Number(own?.textContent ?? 0) / divisor }];
    }),
  );
}

/** `MTD_MSIL1C.xml`, `MTD_MSIL2A.xml` and those of granules, by the names of their elements wherever they stand. */
function fromSentinel(text: string): Partial<SceneMetadata> | null {
  const document = new DOMParser({ onError: onWarningStopParsing }).parseFromString(text, 'text/xml');
  const first = (...names: string[]) =>
    names.map((name) => document.getElementsByTagName(name)[0]?.textContent?.trim()).find((found) => found);
  const name = first('SPACECRAFT_NAME') ?? /Sentinel-2[A-D]/i.exec(first('TILE_ID', 'PRODUCT_URI') ?? '')?.[0];
  const product = first('PRODUCT_URI', 'TILE_ID');
  if (name === undefined && product === undefined) return null;
  return {
    ...noMetadata,
    id: product?.replace(/\.SAFE$/, '') ?? null,
    platform: (name ?? `sentinel-${/^S(2[A-D])/.exec(product ?? '')?.[1] ?? '2'}`).toLowerCase(),
    instruments: ['msi'],
    acquiredAtMs: instant(first('DATATAKE_SENSING_START', 'SENSING_TIME', 'PRODUCT_START_TIME')),
    cloudCover: within(first('Cloud_Coverage_Assessment', 'CLOUDY_PIXEL_PERCENTAGE'), 0, 100),
    scales: sentinelScales(document),
    nodata: 0,
    provider: 'Copernicus Sentinel data',
  };
}

function fromStac(text: string): Partial<SceneMetadata> | null {
  // Every field that is read is checked below.
  const item = JSON.parse(text) as {
    type?: unknown;
    stac_version?: unknown;
    id?: unknown;
    properties?: Record<string, unknown>;
  };
  if (item.type !== 'Feature' || typeof item.stac_version !== 'string') return null;
  const given = item.properties ?? {};
  const instruments = Array.isArray(given['instruments'])
    ? given['instruments'].filter((instrument): instrument is string => typeof instrument === 'string')
    : [];
  return {
    ...noMetadata,
    id: textOf(item.id),
    platform: textOf(given['platform']),
    instruments,
    acquiredAtMs: instant(textOf(given['datetime']) ?? textOf(given['start_datetime']) ?? undefined),
    cloudCover: within(given['eo:cloud_cover'], 0, 100),
    sunAzimuth: degrees(given['view:sun_azimuth']),
    sunElevation: within(given['view:sun_elevation'], -90, 90),
  };
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value.slice(0, 100) : null);

function instant(text: string | undefined): number | null {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : ms;
}

/** Null where it is out of its bounds: Landsat writes -1 for a cloud cover that is not known. */
function within(value: unknown, least: number, most: number): number | null {
  const number = value === undefined || value === null || value === '' ? NaN : Number(value);
  return number >= least && number <= most ? number : null;
}

/** Landsat counts to 180 and from there below zero. */
const degrees = (value: unknown) => {
  const number = within(value, -180, 360);
  return number !== null && number < 0 ? number + 360 : number;
};
