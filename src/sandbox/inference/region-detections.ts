/** Only for child processes: loads GDAL. */
import { join } from 'node:path';
import gdal from 'gdal-async';
import type { Feature, Polygon } from 'geojson';
import { openRaster } from '../../raster/open-raster.ts';
import { noClass } from '../../raster/model/class-raster.ts';
import { allPlaced, placing, writeFeatures } from './detections.ts';
import type { Model } from './models.ts';

/** Writes connected pixels of one class as a polygon each, in longitude and latitude where the raster has a place, else in pixels. */
export async function writeRegions({
  classesPath,
  resultPath,
  model,
  workFolder,
}: {
  classesPath: string;
  resultPath: string;
  model: Model;
  workFolder: string;
}): Promise<void> {
  const classes = openRaster(classesPath, ['GTiff']);
  const polygons = gdal.drivers.get('GPKG').create(join(workFolder, 'regions.gpkg'));
  try {
    const layer = polygons.layers.create('regions', null, gdal.Polygon);
    layer.fields.add(new gdal.FieldDefn('class', gdal.OFTInteger));
    const mask = classes.bands.get(1).getMaskBand();
    gdal.polygonize({
      src: classes.bands.get(1),
      dst: layer,
      ...(mask && { mask }),
      pixValField: 0,
      connectedness: 4,
    });
    await writeFeatures(resultPath, model, featuresOf(layer, classes, model));
  } finally {
    polygons.close();
    classes.close();
  }
}

function* featuresOf(
  layer: gdal.Layer,
  classes: gdal.Dataset,
  { labels, background, minPixels }: Model,
): Generator<Feature> {
  const { geoTransform: t, srs } = classes;
  const pixelArea = t ? Math.abs((t[1] ?? 1) * (t[5] ?? 1) - (t[2] ?? 0) * (t[4] ?? 0)) : 1;
  const place = placing(srs);
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- gdal-async's type lacks the null after the last one
  for (let feature = layer.features.first(); feature !== null; feature = layer.features.next()) {
    const found = Number(feature.fields.get('class'));
    // Polygonizing makes polygons only, whose type GDAL's bindings leave open.
    const geometry = feature.getGeometry() as gdal.Polygon;
    const pixels = Math.round(geometry.getArea() / pixelArea);
    if (found === background || found === noClass || pixels < minPixels) continue;
    const { coordinates } = geometry.toObject() as Polygon; // as GeoJSON
    const rings = coordinates
      .map((ring) => allPlaced(ring.map(([x = 0, y = 0]) => place(x, y))))
      .filter((ring) => ring !== null);
    // A region beyond the limits of its projection has no longitude and latitude, so it has no place.
    if (rings.length < coordinates.length) continue;
    const areaM2 = srs?.isProjected() ? Math.round(geometry.getArea()) : undefined;
    yield {
      type: 'Feature',
      geometry: { type: 'Polygon', coordinates: rings },
      properties: {
        label: labels[found] ?? String(found),
        class: found,
        pixels,
        ...(areaM2 === undefined ? {} : { areaM2 }),
      },
    };
  }
}
