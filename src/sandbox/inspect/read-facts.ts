import * as z from 'zod';
import { geojsonGeometry } from '../../contract/index.ts';
import type { FileFacts } from './facts.ts';

/** Inspection job, and the modules that it loads for most files. */
export const inspection = {
  module: new URL('./inspect-job.ts', import.meta.url),
  imports: [new URL('./raster.ts', import.meta.url), new URL('./vector.ts', import.meta.url)],
};

const maxFactsCharacters = 1024 * 1024;

/** Shape of the facts that other code uses. The check is necessary: a file may have taken over the process that reports them. */
const factsShape = z.looseObject({
  kind: z.enum(['raster', 'vector', 'pdf', 'image', 'czml', 'tiles3d', 'video']),
  mediaType: z.string().regex(/^[a-z]+\/[A-Za-z0-9.+-]{1,100}$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  footprint: geojsonGeometry.refine(({ type }) => type === 'Polygon' || type === 'MultiPolygon').nullable(),
  acquiredAt: z.iso.datetime().nullable(),
  raster: z
    .looseObject({
      width: z.int().positive(),
      height: z.int().positive(),
      crs: z.string().nullable(),
      epsg: z.int().nullable(),
      geoTransform: z.array(z.number()).length(6).nullable(),
      bands: z.array(
        z.looseObject({
          description: z.string().max(200).optional(),
          color: z.enum(['red', 'green', 'blue', '']).optional(),
        }),
      ),
    })
    .optional(),
});

/** The facts of an inspection's answer. Throws where it is none. */
export function readFacts(answer: unknown): FileFacts {
  const read = factsShape.safeParse(answer);
  if (!read.success || JSON.stringify(answer).length > maxFactsCharacters)
    throw new Error('the inspection answered something other than the facts of a file');
  // The shape has every fact that code computes with.
  return answer as FileFacts;
}
