import type { Job } from './child/protocol.ts';
import { openScene } from './scene.ts';

/** The bands of rasters, and the size of the largest. */
export interface DescribedInput {
  readonly bands: readonly { readonly names: readonly string[]; readonly place: string }[];
  readonly width: number;
  readonly height: number;
}

const mostCharacters = 500;

/** Job: what the rasters that it is lent hold, by the names that steps find their bands by. */
const job: Job<null, DescribedInput> = async (_input, { files }) => {
  const scene = openScene(files);
  try {
    const [largest] = scene.datasets.map(({ rasterSize }) => rasterSize).toSorted((a, b) => b.x * b.y - a.x * a.y);
    return {
      bands: scene.bands.map(({ names, place }) => ({
        names: names.map((name) => name.slice(0, mostCharacters)),
        place: (place ?? '').slice(0, mostCharacters),
      })),
      width: largest?.x ?? 0,
      height: largest?.y ?? 0,
    };
  } finally {
    scene.close();
  }
};
export default job;
