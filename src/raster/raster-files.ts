/** Endings of files that are taken for rasters; whether they are, opening them tells. */
export const rasterExtensions: ReadonlySet<string> = new Set([
  '.tif',
  '.tiff',
  '.jp2',
  '.png',
  '.jpg',
  '.jpeg',
  '.nc',
  '.asc',
  '.dt0',
  '.dt1',
  '.dt2',
  '.hgt',
  '.ntf',
  '.nitf',
  '.nsf',
  '.img',
]);
