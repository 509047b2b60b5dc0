/** Opens what it is lent by one driver and with no check at all, as a reader without this kit's care does. */
import gdal from 'gdal-async';
import type { Job } from '../../src/child/in-child.ts';

const job: Job<{ driver: string; overview: boolean }, string> = async (
  { driver, overview },
  { files: [path = ''] },
) => {
  const dataset = gdal.drivers.get(driver).open(path, 'r');
  const [{ x, y }, side] = [dataset.rasterSize, overview ? 64 : 0];
  const [width, height] = side > 0 ? [side, side] : [x, y];
  const pixels = new Uint8Array(width * height);
  dataset.bands.get(1).pixels.read(0, 0, x, y, pixels, { buffer_width: width, buffer_height: height });
  return Buffer.from(pixels).toString('latin1');
};
export default job;
