import type { CatalogItem } from '../../contract/index.ts';
import { itemsOf } from '../../app/processing/facts-of-inputs.ts';
import type { RunView } from '../../app/runs/run-view.ts';
import { PlatformError, type PlatformClient } from '../../platform-client/index.ts';
import type { AnyStep } from '../../steps/step.ts';

/** Part of the output's box that must lie within that of its input. A warp turns a scene, and so enlarges its box. */
const sharedPart = 0.3;

/** Time and place of a delivered item beside those of its input, as lines to print. `isRight` is false if they differ. */
export interface ComparedPlace {
  readonly lines: readonly string[];
  readonly isRight: boolean;
}

/** Compares the item of a delivered file with the items that the run took. Nothing is compared for an input without an item. */
export async function comparePlace(
  client: Pick<PlatformClient, 'getItem'>,
  delivered: { readonly collectionId: string; readonly fileId: string },
  run: Pick<RunView, 'input'>,
  step: Pick<AnyStep, 'acquisition'> | undefined,
): Promise<ComparedPlace> {
  const item = await client.getItem(delivered.collectionId, delivered.fileId).catch((error: unknown) => {
    if (error instanceof PlatformError && error.platformStatus === 404) return null;
    throw error;
  });
  const sources = await Promise.all(
    itemsOf(run.input).map((reference) => client.getItem(reference.collectionId, reference.itemId)),
  );
  if (item === null) {
    const line = 'in the catalog     no item: neither the file nor its input has a place';
    return { lines: [line], isRight: !sources.some(({ bbox }) => bbox) };
  }
  const [time, box] = [compareTime(item, sources, step), compareBox(item, sources)];
  return {
    lines: [`dated              ${time.text}`, `lies               ${box.text}`],
    isRight: time.isRight && box.isRight,
  };
}

interface Comparison {
  readonly text: string;
  readonly isRight: boolean;
}

function compareTime(
  { datetime = '' }: CatalogItem,
  sources: readonly CatalogItem[],
  step: Pick<AnyStep, 'acquisition'> | undefined,
): Comparison {
  const times = sources.flatMap((source) => (source.datetime === undefined ? [] : [source.datetime])).toSorted();
  const expected = { latest: times.at(-1), earliest: times[0], none: undefined }[step?.acquisition ?? 'latest'];
  if (expected === undefined) return { text: datetime, isRight: true };
  const isRight = Date.parse(datetime) === Date.parse(expected);
  return { text: `${datetime}, its input ${expected}${isRight ? '' : '  NOT THE SAME'}`, isRight };
}

function compareBox({ bbox }: CatalogItem, sources: readonly CatalogItem[]): Comparison {
  const boxes = sources.flatMap((source) => (source.bbox?.length === 4 ? [source.bbox] : []));
  const around = [0, 1, 2, 3].map((i) => Math[i < 2 ? 'min' : 'max'](...boxes.map((box) => box[i] ?? NaN)));
  const shown = (box: readonly number[]) => box.map((edge) => edge.toFixed(4)).join(', ');
  if (boxes.length === 0) return { text: bbox ? shown(bbox) : 'nowhere', isRight: true };
  // A box across 180 degrees has its west beyond its east: nothing is compared there.
  const crosses = [...boxes, bbox ?? []].some(([from = 0, , to = 0]) => from > to);
  const isRight = crosses || (bbox !== undefined && shareWithin(bbox, around) >= sharedPart);
  const text = `${bbox ? shown(bbox) : 'nowhere'}, its input ${shown(around)}`;
  return { text: `${text}${isRight ? '' : '  NOT THE SAME PLACE'}`, isRight };
}

/** The part of a box that lies within another: of a line or a point, 1 if it lies within. */
function shareWithin(box: readonly number[], other: readonly number[]): number {
  const share = (low: 0 | 1, high: 2 | 3) => {
    const [from = NaN, to = NaN, start = NaN, end = NaN] = [box[low], box[high], other[low], other[high]];
    const shared = Math.min(to, end) - Math.max(from, start);
    return to > from ? Math.max(0, shared) / (to - from) : Number(shared >= 0);
  };
  return share(0, 2) * share(1, 3);
}
