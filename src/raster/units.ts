/** Units of the values of a band. */

/** Spellings of one unit, as GDAL's drivers and EPSG write them, in lower case. */
const spellings: Readonly<Record<string, RegExp>> = {
  m: /^(m|met(re|er)s?)$/,
  ft: /^(ft|foot|feet|international (foot|feet)|(foot|feet) \(international\))$/,
  'us-ft': /^(us-?ft|ftus|foot_us|(u\.?s\.?|us)[ _](survey[ _])?(foot|feet)|(foot|feet) \((u\.?s\.?|us)( survey)?\))$/,
  yd: /^(yd|yards?)$/,
  in: /^(in|inch(es)?)$/,
  fathom: /^(fathoms?|ftm)$/,
  mi: /^(mi|miles?|statute miles?)$/,
  nmi: /^(nmi|m_nautical|nautical miles?)$/,
  km: /^(km|kilomet(re|er)s?)$/,
  dm: /^(dm|decimet(re|er)s?)$/,
  cm: /^(cm|centimet(re|er)s?)$/,
  mm: /^(mm|millimet(re|er)s?)$/,
  K: /^(k|kelvins?)$/,
  '°C': /^(°?c|deg(ree)?s?_? ?c(elsius)?|celsius)$/,
};

const metresPerLength: Readonly<Record<string, number>> = {
  m: 1,
  ft: 0.3048,
  'us-ft': 1200 / 3937,
  yd: 0.9144,
  in: 0.0254,
  fathom: 1.8288,
  mi: 1609.344,
  nmi: 1852,
  km: 1000,
  dm: 0.1,
  cm: 0.01,
  mm: 0.001,
};

/** The usual spelling of a unit; an unknown one in lower case; '' if a band states none. */
export function unitOf({ unitType }: { readonly unitType: string | null }): string {
  const written = (unitType ?? '').trim().replace(/\s+/g, ' ').toLowerCase();
  return Object.entries(spellings).find(([, pattern]) => pattern.test(written))?.[0] ?? written;
}

/** Metres in the unit of a band; null if it states no known unit of length. */
export const metresPerUnitOf = (band: { readonly unitType: string | null }): number | null =>
  metresPerLength[unitOf(band)] ?? null;
