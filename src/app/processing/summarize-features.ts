/** Only for child processes: loads GDAL. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import { openVector } from '../../raster/open-vector.ts';
import type { PreviewStyle } from '../../raster/preview.ts';
import type { VectorOutput } from '../../steps/step.ts';
import type { OutputSummary, RunResult } from './output-summary.ts';
import { statisticsOf, summarize } from './summarize.ts';

const pictureSide = 768;
/** Around the features, of their extent. */
const margin = 0.03;
const maxFeatures = 200_000;
const maxFields = 16;
/** Single points and upright lines have an extent of no size; in degrees and in metres this is a place that a map shows. */
const leastSize = 1e-3;

/** Draws the features of an output, coloured by the first of their numbers, and counts what stands in their fields. Null where there are none, or too many. */
export async function summarizeFeatures(
  path: string,
  { fields, geometry }: VectorOutput,
  workFolder: string,
): Promise<RunResult | null> {
  const dataset = openVector(path);
  try {
    const layer = dataset.layers.get(0);
    const count = layer.features.count();
    if (count === 0 || count > maxFeatures) return null;
    const numbers = Object.keys(fields).filter((name) => fields[name] === 'real' || fields[name] === 'integer');
    const shown = numbers.find((name) => fields[name] === 'real') ?? numbers[0] ?? null;
    // The one that is drawn first: whoever points at the map reads it.
    const ordered = numbers.toSorted((a, b) => Number(b === shown) - Number(a === shown)).slice(0, maxFields);
    const values = new Map(ordered.map((name): [string, number[]] => [name, []]));
    layer.features.forEach((feature) => {
      for (const [name, list] of values) {
        const value: unknown = feature.fields.get(name);
        if (typeof value === 'number' && Number.isFinite(value)) list.push(value);
      }
    });
    const style: PreviewStyle = { ramp: 'rdylgn' };
    const described = [...values].flatMap(([name, list]): OutputSummary['bands'] =>
      [statisticsOf(name, Float64Array.from(list), list.length / count, name === shown ? style : null, null)].flatMap(
        (summary) => summary ?? [],
      ),
    );
    const histogram = described.find(({ name }) => name === shown)?.histogram;
    const drawn = drawOnto(join(workFolder, 'features.tif'), dataset, shown, geometry);
    const result = await summarize(
      drawn,
      // All of one value: in the middle of the ramp.
      histogram
        ? {
            ...style,
            range:
              histogram.low < histogram.high ? [histogram.low, histogram.high] : [histogram.low - 1, histogram.low + 1],
          }
        : { ...style, range: [0, 1] },
    );
    return result && { ...result, summary: { ...result.summary, features: count, bands: described } };
  } finally {
    dataset.close();
  }
}

/** Makes a raster of the features: of their `field`, or of ones. */
function drawOnto(
  path: string,
  dataset: gdal.Dataset,
  field: string | null,
  geometry: VectorOutput['geometry'],
): string {
  const { minX, minY, maxX, maxY } = dataset.layers.get(0).getExtent();
  const longest = Math.max(maxX - minX, maxY - minY, leastSize);
  const room = longest * margin;
  const [west, south, east, north] = [minX - room, minY - room, maxX + room, maxY + room];
  const pixel = Math.max(east - west, north - south) / pictureSide;
  const sides = [east - west, north - south].map((size) => Math.max(1, Math.round(size / pixel)));
  const isArea = geometry.endsWith('Polygon');
  gdal
    .rasterize(
      path,
      dataset,
      [
        ...(field === null ? ['-burn', '1'] : ['-a', field, '-where', `"${field.replaceAll('"', '""')}" IS NOT NULL`]),
        // GDAL also draws features that are thinner than a pixel.
        ...(isArea ? [] : ['-at']),
        ...['-te', west, south, east, north, '-ts', ...sides, '-ot', 'Float32', '-init', 'nan', '-a_nodata', 'nan'],
        ...['-of', 'GTiff'],
      ].map(String),
    )
    .close();
  return path;
}
