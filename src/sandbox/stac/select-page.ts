import type { Slice } from '../slices.ts';
import type { Rows } from './item-index.ts';

export interface RowOrder {
  /** Negative where row `a` comes before row `b`. */
  readonly compare: (a: number, b: number) => number;
  /**
   * Writes for each of `rows` from `from` to `to` a number that is never greater for a row that comes before another:
   * most rows of many need no comparison.
   */
  readonly keys: (rows: Rows, from: number, to: number, into: Float64Array) => void;
}

/** So many are sorted in a few milliseconds. */
const runLength = 8_192;

/** The rows of one page, in order, in slices. */
export async function selectPage(
  rows: Rows,
  order: RowOrder,
  offset: number,
  limit: number,
  slice: Slice,
): Promise<number[]> {
  const wanted = Math.min(rows.length, offset + limit);
  const isFew = wanted <= Math.min(runLength, rows.length / 8);
  return (isFew ? await firstRows(rows, order, wanted, slice) : await sorted(rows, order, wanted, slice)).slice(offset);
}

/** Every so many is looked at first, so that in whatever order the others come few of them are better than what there is. */
const sampleEvery = 64;

/** Few rows of many are kept in a heap as they pass: a page of a million matches costs little more than looking at each once. */
async function firstRows(rows: Rows, { compare, keys }: RowOrder, wanted: number, slice: Slice): Promise<number[]> {
  // The last of the best rows so far is on top.
  const heap: number[] = [];
  const take = (row: number) => {
    if (heap.length < wanted) siftUp(heap, heap.push(row) - 1, compare);
    else if (compare(row, heap[0] as number) < 0) {
      heap[0] = row;
      siftDown(heap, compare);
    } else return false;
    return heap.length === wanted;
  };
  for (let i = 0; i < rows.length; i += sampleEvery) take(rows[i] as number);
  const block = new Float64Array(runLength);
  const key = new Float64Array(1);
  const topKey = () => {
    if (heap.length < wanted) return Infinity;
    keys(heap, 0, 1, key);
    return key[0] as number;
  };
  let top = topKey();
  const takeBlock = (from: number, to: number) => {
    keys(rows, from, to, block);
    for (let i = from; i < to; i++)
      if ((block[i - from] as number) <= top && i % sampleEvery !== 0 && take(rows[i] as number)) top = topKey();
  };
  for (let from = 0; from < rows.length; from += runLength) {
    if (slice.isOver) await slice.next();
    takeBlock(from, Math.min(rows.length, from + runLength));
  }
  return heap.sort(compare);
}

type Compare = RowOrder['compare'];

function siftUp(heap: number[], from: number, compare: Compare): void {
  for (let i = from; i > 0;) {
    const parent = (i - 1) >> 1;
    if (compare(heap[i] as number, heap[parent] as number) <= 0) return;
    swap(heap, i, parent);
    i = parent;
  }
}

function siftDown(heap: number[], compare: Compare): void {
  for (let i = 0; ;) {
    let last = i;
    for (const child of [2 * i + 1, 2 * i + 2])
      if (child < heap.length && compare(heap[child] as number, heap[last] as number) > 0) last = child;
    if (last === i) return;
    swap(heap, i, last);
    i = last;
  }
}

function swap(heap: number[], a: number, b: number): void {
  [heap[a], heap[b]] = [heap[b] as number, heap[a] as number];
}

/** The first `wanted` rows: runs that are sorted by themselves, and then the first of all runs again and again. */
async function sorted(rows: Rows, { compare }: RowOrder, wanted: number, slice: Slice): Promise<number[]> {
  const runs: { rows: number[]; at: number }[] = [];
  for (let from = 0; from < rows.length; from += runLength) {
    runs.push({ rows: Array.from(rows.slice(from, from + runLength)).sort(compare), at: 0 });
    if (slice.isOver) await slice.next();
  }
  const [only] = runs;
  if (runs.length <= 1) return only?.rows.slice(0, wanted) ?? [];
  const head = ({ rows: run, at }: { rows: number[]; at: number }) => run[at] as number;
  const queue = runs.sort((a, b) => compare(head(a), head(b)));
  const first: number[] = [];
  while (first.length < wanted) {
    const run = queue[0] as { rows: number[]; at: number };
    first.push(head(run));
    run.at += 1;
    if (run.at === run.rows.length) queue.shift();
    // It moves behind those runs that are before it now: there are few.
    for (
      let j = 0;
      run.at < run.rows.length && j + 1 < queue.length && compare(head(run), head(queue[j + 1]!)) > 0;
      j++
    )
      [queue[j], queue[j + 1]] = [queue[j + 1]!, run];
    if (slice.isOver) await slice.next();
  }
  return first;
}
