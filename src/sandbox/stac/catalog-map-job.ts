/** Runs in a child process: where the collections of a catalog lie, as a JPEG. */
import sharp from 'sharp';
import type { Job } from '../../child/in-child.ts';
import type { Box } from '../../raster/footprint.ts';

export interface CatalogMapInput {
  readonly boxes: readonly Box[];
}

const [width, height] = [720, 360];
const stepDegrees = 30;

const job: Job<CatalogMapInput, Uint8Array> = ({ boxes }) => {
  const x = (lon: number) => ((lon + 180) / 360) * width;
  const y = (lat: number) => ((90 - lat) / 180) * height;
  const lines: string[] = [];
  for (let lon = -180; lon <= 180; lon += stepDegrees)
    lines.push(`<line x1="${x(lon)}" y1="0" x2="${x(lon)}" y2="${height}"/>`);
  for (let lat = -90; lat <= 90; lat += stepDegrees)
    lines.push(`<line x1="0" y1="${y(lat)}" x2="${width}" y2="${y(lat)}"/>`);
  // At least a few pixels, or a city would not be seen on the globe.
  const marks = boxes.map(([west, south, east, north]) => {
    const [w, h] = [Math.max(6, x(east) - x(west)), Math.max(6, y(south) - y(north))];
    return `<rect x="${(x(west) + x(east) - w) / 2}" y="${(y(south) + y(north) - h) / 2}" width="${w}" height="${h}"/>`;
  });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="#eef2f3"/><g stroke="#c9d3d6">${lines.join('')}</g><g fill="#2f7d8c" fill-opacity="0.6" stroke="#1d4f59">${marks.join('')}</g></svg>`;
  return sharp(Buffer.from(svg)).jpeg({ quality: 85 }).toBuffer();
};
export default job;
