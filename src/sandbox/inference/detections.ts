import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import type { Feature } from 'geojson';
import type { Model } from './models.ts';

/** Writes features as GeoJSON one after the other, so that their number does not matter. */
export async function writeFeatures(path: string, model: Model, features: Iterable<Feature>): Promise<void> {
  const out = createWriteStream(path);
  const head = { type: 'FeatureCollection', model: model.name, version: model.version, labels: model.labels };
  out.write(`${JSON.stringify(head).slice(0, -1)},"features":[`);
  let separator = '\n';
  for (const feature of features) {
    if (!out.write(separator + JSON.stringify(feature))) await once(out, 'drain');
    separator = ',\n';
  }
  out.end('\n]}\n');
  await once(out, 'finish');
}
