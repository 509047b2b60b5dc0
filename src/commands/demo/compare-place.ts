import type { CatalogItem } from '../../contract/index.ts';
import { itemsOf } from '../../app/processing/facts-of-inputs.ts';
import type { RunView } from '../../app/runs/run-view.ts';
import type { PlatformClient } from '../../platform-client/index.ts';
import type { AnyStep } from '../../steps/step.ts';

/** Part of the input's size by which the box of an output may exceed it, since a warp adds pixels at the edges. */
const slack = 0.05;

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
  const item = await client.getItem(delivered.collectionId, delivered.fileId).catch(() => null);
  const sources = await Promise.all(itemsOf(run.input).map((one) => client.getItem(one.collectionId, one.itemId)));
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
  return { text: isRight ? `${datetime}  as its input` : `${datetime}  NOT AS ITS INPUT, ${expected}`, isRight };
}

function compareBox({ bbox }: CatalogItem, sources: readonly CatalogItem[]): Comparison {
  const text = bbox?.map((edge) => edge.toFixed(4)).join(', ') ?? 'nowhere';
  const boxes = sources.flatMap((source) => (source.bbox?.length === 4 ? [source.bbox] : []));
  const [west, south, east, north] = [0, 1, 2, 3].map((i) => Math[i < 2 ? 'min' : 'max'](...boxes.map((one) => one[i] ?? NaN))); // oxfmt-ignore
  // A box across 180 degrees has its west beyond its east.
  const crosses = [...boxes, bbox ?? []].some(([from = 0, , to = 0]) => from > to);
  if (boxes.length === 0 || crosses) return { text, isRight: true };
  const [dx, dy] = [((east ?? 0) - (west ?? 0)) * slack, ((north ?? 0) - (south ?? 0)) * slack];
  const [w = NaN, s = NaN, e = NaN, n = NaN] = bbox ?? [];
  const isRight = w >= (west ?? 0) - dx && s >= (south ?? 0) - dy && e <= (east ?? 0) + dx && n <= (north ?? 0) + dy;
  return { text: isRight ? `${text}  within its input` : `${text}  NOT WITHIN ITS INPUT`, isRight };
}
