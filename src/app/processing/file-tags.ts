import type { AnyStep } from '../../steps/step.ts';
import type { ProvenanceKnown, ReadInputs } from './provenance.ts';
import { acquisitionOf, itemsOf } from './facts-of-inputs.ts';

/** Longest list of source items that a tag holds. The provenance beside it has all of them. */
const maxItemsCharacters = 20_000;

/** Tags of a source that would be false for a result, unless the result has its own. */
export const tagsOfSources = ['START_DATETIME', 'END_DATETIME', 'SOURCE_ITEMS', 'PROVENANCE'] as const;
/** The same for a result whose step gives it no time. */
export const timeTags = ['ACQUISITIONDATETIME', 'TIFFTAG_DATETIME'] as const;

/**
 * Facts of a run's outputs as metadata of their files, for readers that never see the platform: names of GeoTIFF's own tags
 * (`TIFFTAG_*`) and of GDAL (`ACQUISITIONDATETIME`). Times in ISO 8601, UTC; `TIFFTAG_DATETIME` in TIFF's form.
 */
export function fileTags(
  step: Pick<AnyStep, 'title' | 'acquisition'>,
  { input, software }: Pick<ProvenanceKnown, 'input' | 'software'>,
  inputs: ReadInputs,
): Record<string, string> {
  const { acquired, first, last } = acquisitionOf(step, inputs.flatMap(({ files }) => files)); // oxfmt-ignore
  const items = itemsOf(input)
    .map(({ collectionId, itemId }) => `${collectionId}/${itemId}`)
    .join(' ');
  return {
    TIFFTAG_IMAGEDESCRIPTION: step.title,
    TIFFTAG_SOFTWARE: Object.entries(software)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
    ...(acquired !== undefined && {
      TIFFTAG_DATETIME: acquired.slice(0, 19).replaceAll('-', ':').replace('T', ' '),
      ACQUISITIONDATETIME: acquired,
    }),
    ...(first !== undefined && last !== undefined && first !== last && { START_DATETIME: first, END_DATETIME: last }),
    ...(items !== '' && items.length <= maxItemsCharacters && { SOURCE_ITEMS: items }),
  };
}
