import type { Job } from '../child/in-child.ts';
import { openFeatures } from './features.ts';
import type { BandGrid } from './match-band.ts';
import { openScene } from './scene.ts';

/** The bands of rasters, and the size of the largest. */
export interface DescribedInput {
  readonly bands: readonly { readonly names: readonly string[]; readonly place: string; readonly grid: BandGrid }[];
  readonly width: number;
  readonly height: number;
}

const maxCharacters = 500;
/** A file may say anything. */
const finite = (numbers: number[] | null) => (numbers?.every(Number.isFinite) ? numbers : null);

/** Job: what the rasters that it is lent hold, by the names that steps find their bands by. Of features only that they can be read. */
const job: Job<{ readonly kind: 'raster' | 'vector' }, DescribedInput> = ({ kind }, { files }) => {
  if (kind === 'vector') {
    openFeatures(files).close();
    return { bands: [], width: 0, height: 0 };
  }
  const scene = openScene(files);
  try {
    const [largest] = scene.datasets.map(({ rasterSize }) => rasterSize).toSorted((a, b) => b.x * b.y - a.x * a.y);
    return {
      bands: scene.bands.map(({ names, place, dataset }) => ({
        names: names.map((name) => name.slice(0, maxCharacters)),
        place: (place ?? '').slice(0, maxCharacters),
        grid: { width: dataset.rasterSize.x, height: dataset.rasterSize.y, geoTransform: finite(dataset.geoTransform) },
      })),
      width: largest?.x ?? 0,
      height: largest?.y ?? 0,
    };
  } finally {
    scene.close();
  }
};
export default job;
