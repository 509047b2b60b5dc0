import { writeFileSync } from 'node:fs';
import { setImmediate as tick } from 'node:timers/promises';
import { coverShares, gridOf, markInside, placeZones, requireSameGrid, windowOf } from '../raster.ts';
import {
  isNotAlpha,
  KitError,
  readingOf,
  type Features,
  type ReadingParameters,
  type Scene,
  type StepJob,
} from '../step-kit.ts';
import { classFields, fields } from './fields.ts';
import { csvOf, ZoneStatistics } from './statistics.ts';

const stripPixels = 200_000;
/** Minimum number of strips per zone, so that progress is visible. */
const leastStrips = 8;

interface Parameters extends ReadingParameters {
  readonly band: string;
  readonly label: string;
  readonly pixels: 'centre' | 'touched' | 'share';
  readonly allBands: boolean;
  readonly percentiles: boolean;
  readonly classes: boolean;
  readonly crs?: string | undefined;
}

interface Job extends Omit<StepJob<Parameters, 'areas' | 'table' | 'counts'>, 'inputs'> {
  readonly inputs: { readonly values: Scene; readonly zones: Features };
}

export default async function work({
  parameters,
  inputs,
  raster,
  outputs,
  workFolder,
  share,
  signal,
}: Job): Promise<void> {
  const scene = inputs.values;
  const chosen = parameters.allBands ? scene.bands.filter(isNotAlpha) : [scene.findBand(parameters.band)];
  // A scene has a band besides alpha.
  const [first] = chosen as [(typeof chosen)[number]];
  for (const sceneBand of chosen) requireSameGrid(first, sceneBand);
  const { dataset } = first;
  const layer = inputs.zones.onlyLayer();
  if (parameters.label !== '' && !layer.fields.getNames().includes(parameters.label))
    throw new KitError(
      'unknown_field',
      `the areas have no field ${JSON.stringify(parameters.label)}; they have ${layer.fields.getNames().join(', ')}`,
      { status: 422 },
    );
  const zones = placeZones(inputs.zones.datasets[0]!, dataset, {
    label: parameters.label,
    crs: parameters.crs,
    folder: workFolder,
  });
  const bands = chosen.map((sceneBand) => ({
    name: sceneBand.names[0] ?? String(sceneBand.index),
    reader: raster.reader(sceneBand, readingOf(parameters)),
  }));
  const { width, height } = gridOf(dataset);
  const counting = share(0.2, 1);
  const byShare = parameters.pixels === 'share';
  const asked = {
    percentiles: parameters.percentiles,
    classes: parameters.classes,
    shares: byShare,
    bands: bands.length,
  };
  let [strip, inside] = [new Float64Array(0), new Float64Array(0)];
  let mask = new Uint8Array(0);
  const results: ({ zone: string; band: string } & ZoneStatistics['values'])[] = [];
  const classes: Readonly<Record<keyof typeof classFields, string | number>>[] = [];
  const features: object[] = [];
  for (const [i, { name: zone, rings, coordinates }] of zones.entries()) {
    const statistics = bands.map(() => new ZoneStatistics(asked));
    const window = windowOf(rings, width, height);
    const rows = window
      ? Math.max(1, Math.min(Math.ceil(window.height / leastStrips), Math.floor(stripPixels / window.width)))
      : 1;
    for (let y = 0; window && y < window.height; y += rows) {
      await tick();
      signal.throwIfAborted();
      const part = { ...window, y: window.y + y, height: Math.min(rows, window.height - y) };
      const count = part.width * part.height;
      if (strip.length < count) {
        [strip, inside] = [new Float64Array(count), new Float64Array(count)];
        mask = new Uint8Array(count);
      }
      if (byShare) coverShares(rings, part, inside);
      else markInside(rings, part, mask, { isTouched: parameters.pixels === 'touched' });
      const weights = byShare ? inside : mask;
      bands.forEach(({ reader }, k) => {
        reader.read([part.x, part.y, part.width, part.height], strip);
        for (let n = 0; n < count; n++)
          if (weights[n]! > 0 && Number.isFinite(strip[n])) statistics[k]!.add(strip[n]!, weights[n]);
      });
      counting.progress((i + Math.min(1, (y + rows) / window.height)) / zones.length);
    }
    for (const [k, { name: band }] of bands.entries()) {
      const ofBand = statistics[k]!;
      const properties = { zone, band, ...ofBand.values };
      results.push(properties);
      features.push({ type: 'Feature', properties, geometry: { type: 'MultiPolygon', coordinates } });
      for (const [value, count] of ofBand.classes)
        classes.push({ zone, band, value, count, share: count / ofBand.count });
    }
  }
  if (results.every(({ count }) => count === 0))
    throw new KitError('zones_outside', 'no pixel with a value lies inside any of the areas', { status: 422 });
  writeFileSync(outputs.areas, JSON.stringify({ type: 'FeatureCollection', features }));
  writeFileSync(outputs.table, csvOf(Object.keys(fields), results));
  if (parameters.classes) writeFileSync(outputs.counts, csvOf(Object.keys(classFields), classes));
}
