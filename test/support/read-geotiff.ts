import { fromFile } from 'geotiff';

/** A raster read without GDAL: an oracle of its own. */
export async function readGeoTiff(path: string) {
  const tiff = await fromFile(path);
  const image = await tiff.getImage();
  const [samples] = (await image.readRasters()) as unknown as ArrayLike<number>[];
  const fileDirectory = image.fileDirectory as unknown as Record<string, unknown>;
  const geoKeys = image.getGeoKeys();
  const [west, north] = image.getOrigin();
  const [pixelX, pixelY] = image.getResolution();
  const read = {
    width: image.getWidth(),
    height: image.getHeight(),
    samples: Array.from(samples!),
    nodata: image.getGDALNoData(),
    epsg: Number(geoKeys?.['ProjectedCSTypeGeoKey'] ?? geoKeys?.['GeographicTypeGeoKey']),
    geoTransform: [west, pixelX, 0, north, 0, pixelY],
    isTiled: image.isTiled,
    images: await tiff.getImageCount(),
    bitsPerSample: image.getBitsPerSample(),
    fileDirectory,
  };
  await tiff.close();
  return read;
}
