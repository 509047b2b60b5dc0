import sharp from 'sharp';
import { notA, nowhere, type Inspector } from './facts.ts';

/** Pictures whose pixels sharp decodes. SVG is left out: what it draws is decided by what it refers to. */
const mediaTypes: Readonly<Record<string, string>> = {
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  tiff: 'image/tiff',
  heif: 'image/avif',
};
const maxPixels = 500_000_000;

/** Decodes every pixel: a picture that is cut off is found out. */
export const inspectImage: Inspector = async ({ path }) => {
  const open = () => sharp(path, { failOn: 'error', limitInputPixels: maxPixels, sequentialRead: true });
  const mediaType = await open()
    .metadata()
    .then(
      ({ format }) => mediaTypes[format],
      () => undefined,
    );
  if (!mediaType) throw notA(`picture (${Object.keys(mediaTypes).join(', ')})`);
  await open()
    .resize(64, 64, { fit: 'inside' })
    .raw()
    .toBuffer()
    .catch(() => {
      throw notA('whole picture');
    });
  return { kind: 'image', mediaType, ...nowhere };
};
