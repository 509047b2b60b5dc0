/** Files that name others, made byte by byte. */
import { gunzipSync } from 'node:zlib';
import { geoTiff } from './geotiff.ts';

/** An HDF5 file (as h5py 3.7 writes it) of one 64 x 64 byte dataset whose bytes lie in another file, named in 200 characters. */
const externalStorage = gunzipSync(
  Buffer.from(
    'H4sIADcaAmsC/+v0cHHj5ZLiYgABDg4GFgYBBmTwHwoK2FD5MPkEKM0IpTug9AommDgjWE4CKi4INR9dXUiQqytI9X80ALNHgxVCczCMgpEIPFwdA0B0BJQPS6UnmFDV5aQmZiOnRw8K7WVkYIOYxQjja0BoJoiAA1QdLpoZ6FJGqHsZkVIwK5AG8ZmYIAaxA81lhKoB5RgDFhzpXQAmDslRzIzwnIKacRkCaBoPN9DyfQALqjr9iuEBYP4J9vN3AcULLD4UmEfzJDkAAF+Zi5ZwBgAA',
    'base64',
  ),
);

/** netCDF-4 whose pixels are the first 4,096 bytes of the file at `path`. */
export function netcdfOf(path: string): Buffer {
  const [bytes, at] = [Buffer.from(externalStorage), externalStorage.indexOf('/xxxx')];
  bytes.fill(0, at, at + 200);
  bytes.write(path, at);
  return bytes;
}

/** A GDAL description that reads the bytes of a file as pixels. */
export function rawVrt(path: string): string {
  return `<VRTDataset rasterXSize="64" rasterYSize="64"><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand"><SourceFilename relativetoVRT="0">${path}</SourceFilename><ImageOffset>0</ImageOffset><PixelOffset>1</PixelOffset><LineOffset>64</LineOffset></VRTRasterBand></VRTDataset>`;
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A whole GeoTIFF of 512 x 512 pixels whose metadata names another dataset, in `domain`. */
export function tiffThatNames(dataset: string, domain: 'OVERVIEWS' | 'GEOLOCATION'): Buffer {
  const items: Readonly<Record<string, string>> =
    domain === 'OVERVIEWS'
      ? { OVERVIEW_FILE: dataset }
      : {
          X_DATASET: dataset,
          Y_DATASET: dataset,
          X_BAND: '1',
          Y_BAND: '1',
          PIXEL_OFFSET: '0',
          LINE_OFFSET: '0',
          PIXEL_STEP: '1',
          LINE_STEP: '1',
        };
  const xml = Object.entries(items).map(
    ([name, value]) => `<Item name="${name}" domain="${domain}">${escaped(value)}</Item>`,
  );
  return geoTiff({
    width: 512,
    height: 512,
    value: (x, y) => x + y,
    gdalMetadata: `<GDALMetadata>${xml.join('')}</GDALMetadata>`,
  });
}

/** The same with metadata that names nothing: what a stranger's file usually holds. */
export const harmlessTiff = geoTiff({
  width: 512,
  height: 512,
  value: (x, y) => x + y,
  gdalMetadata:
    '<GDALMetadata><Item name="CLOUDS">3</Item><Item name="INTERLEAVE" domain="IMAGE_STRUCTURE">BAND</Item></GDALMetadata>',
});
