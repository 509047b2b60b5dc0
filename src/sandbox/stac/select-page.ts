/** Negative where row `a` comes before row `b`. */
export type RowOrder = (a: number, b: number) => number;

/**
 * The rows of one page, in order. Few rows of many are kept in a heap as they pass, so the first pages of
 * a million matches cost little more than looking at each once.
 */
export function selectPage(rows: readonly number[], order: RowOrder, offset: number, limit: number): number[] {
  const wanted = offset + limit;
  if (wanted > rows.length / 8) return [...rows].sort(order).slice(offset, wanted);
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
  for (let i = from; i > 0; ) {
    const parent = (i - 1) >> 1;
    if (order(heap[i] as number, heap[parent] as number) <= 0) return;
    swap(heap, i, parent);
    i = parent;
  }
}

function siftDown(heap: number[], order: RowOrder): void {
  for (let i = 0; ; ) {
    let last = i;
    for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && order(heap[child] as number, heap[last] as number) > 0) last = child;
    if (last === i) return;
    swap(heap, i, last);
    i = last;
  }
}

function swap(heap: number[], a: number, b: number): void {
  [heap[a], heap[b]] = [heap[b] as number, heap[a] as number];
}
