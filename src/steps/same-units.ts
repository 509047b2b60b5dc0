/** Bands that a step compares or merges must agree in unit. */
import type Gdal from 'gdal-async';
import { KitError } from '../contract/kit-error.ts';
import type { SceneBand } from '../raster/scene.ts';

/** Spellings of one unit, as GDAL's drivers and EPSG write them. */
const spellings: Readonly<Record<string, RegExp>> = {
  m: /^(m|met(re|er)s?)$/,
  ft: /^(ft|foot|feet|international (foot|feet))$/,
  'us-ft': /^(us-ft|ftus|foot_us|u\.?s\.? survey (foot|feet))$/,
  K: /^(k|kelvins?)$/,
  '°C': /^(°?c|deg(ree)?s?_? ?c(elsius)?|celsius)$/,
};

function unitOf({ unitType }: Gdal.RasterBand): string {
  const written = (unitType ?? '').trim().replace(/\s+/g, ' ').toLowerCase();
  return Object.entries(spellings).find(([, pattern]) => pattern.test(written))?.[0] ?? written;
}

/** Throws `KitError` (`units_differ`) if two bands state different units. A band without a unit fits every other. */
export function requireSameUnit(first: SceneBand, second: SceneBand): void {
  const [unit, other] = [unitOf(first.band), unitOf(second.band)];
  if (unit === '' || other === '' || unit === other) return;
  const nameOf = (band: SceneBand) => band.place ?? band.fileName;
  throw new KitError(
    'units_differ',
    `${nameOf(first)} is in ${first.band.unitType} and ${nameOf(second)} in ${second.band.unitType}; convert them to one unit first`,
    { status: 422 },
  );
}
