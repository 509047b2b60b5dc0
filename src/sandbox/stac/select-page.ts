import type { Slice } from '../slices.ts';
import type { Rows } from './item-index.ts';

/** Negative where row `a` comes before row `b`. */
export type RowOrder = (a: number, b: number) => number;

/**
 * The rows of one page, in order. Few rows of many are kept in a heap as they pass, so the first pages of
 * a million matches cost little more than looking at each once.
 */
export function selectPage(rows: Rows, order: RowOrder, offset: number, limit: number): number[] {
  const wanted = offset + limit;
  if (wanted > rows.length / 8) return Array.from(rows).sort(order).slice(offset, wanted);
  // The last of the best rows so far is on top.
  const heap: number[] = [];
  for (const row of rows) {
    if (heap.length < wanted) siftUp(heap, heap.push(row) - 1, order);
    else if (order(row, heap[0] as number) < 0) {
      heap[0] = row;
      siftDown(heap, order);
    }
  }
  return heap.sort(order).slice(offset);
}

function siftUp(heap: number[], from: number, order: RowOrder): void {
  for (let i = from; i > 0;) {
    const parent = (i - 1) >> 1;
    if (order(heap[i] as number, heap[parent] as number) <= 0) return;
    swap(heap, i, parent);
    i = parent;
  }
}

function siftDown(heap: number[], order: RowOrder): void {
  for (let i = 0; ;) {
    let last = i;
    for (const child of [2 * i + 1, 2 * i + 2])
      if (child < heap.length && order(heap[child] as number, heap[last] as number) > 0) last = child;
    if (last === i) return;
    swap(heap, i, last);
    i = last;
  }
}

function swap(heap: number[], a: number, b: number): void {
  [heap[a], heap[b]] = [heap[b] as number, heap[a] as number];
}

/** So many are sorted in a few milliseconds. */
const runLength = 8_192;

/** As `selectPage`, in slices. */
export async function selectPageInSlices(
  rows: Rows,
  order: RowOrder,
  offset: number,
  limit: number,
  slice: Slice,
): Promise<number[]> {
  if (rows.length <= runLength) return selectPage(rows, order, offset, limit);
  const wanted = Math.min(rows.length, offset + limit);
  // Runs that are sorted by themselves, and then the first of all runs again and again.
  const runs: { rows: number[]; at: number }[] = [];
  for (let from = 0; from < rows.length; from += runLength) {
    runs.push({ rows: selectPage(rows.slice(from, from + runLength), order, 0, wanted), at: 0 });
    if (slice.isOver) await slice.next();
  }
  const head = ({ rows: run, at }: { rows: number[]; at: number }) => run[at] as number;
  const heap = runs.sort((a, b) => order(head(a), head(b)));
  const page: number[] = [];
  for (let i = 0; i < wanted; i++) {
    const first = heap[0] as { rows: number[]; at: number };
    if (i >= offset) page.push(head(first));
    first.at += 1;
    if (first.at === first.rows.length) heap.shift();
    // It moves behind those runs that are before it now: there are few.
    for (
      let j = 0;
      first.at < first.rows.length && j + 1 < heap.length && order(head(first), head(heap[j + 1]!)) > 0;
      j++
    )
      [heap[j], heap[j + 1]] = [heap[j + 1]!, first];
    if (slice.isOver) await slice.next();
  }
  return page;
}
