/** A part of a drawing's time axis. Lengths are units of the SVG. */
export interface Segment {
  readonly fromMs: number;
  readonly toMs: number;
  readonly x: number;
  readonly width: number;
  /** Drawn short, since nothing happened in it. */
  readonly isFolded: boolean;
}

/** Width of a folded part. */
const foldWidth = 44;
/** A pause is folded if it takes more than this share of the drawing. */
const foldedShare = 0.2;
const leastFoldedMs = 5_000;
const mostFolds = 8;
/** Time that is drawn in full before and after what happened. */
const marginMs = 1_000;

/**
 * Cuts the time from `fromMs` to `toMs` into parts, so that long pauses are drawn short. `eventsMs`: moments at which something happened,
 * in any order.
 */
export function segmentsOf(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  eventsMs: readonly number[],
  plot: { readonly x: number; readonly width: number },
): Segment[] {
  const events = eventsMs.filter((ms) => ms >= fromMs && ms <= toMs).sort((a, b) => a - b);
  const bounds = [fromMs - marginMs, ...events, toMs + marginMs];
  const pauses = bounds
    .slice(1)
    .map((endMs, i) => ({ fromMs: (bounds[i] ?? fromMs) + marginMs, toMs: endMs - marginMs }))
    .filter((pause) => events.length > 0 && lengthOf(pause) > leastFoldedMs);
  // The longest first, because the share of the next one grows when it is folded.
  const folded = new Set<(typeof pauses)[number]>();
  let foldedMs = 0;
  for (const pause of pauses.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
    if (folded.size === mostFolds || lengthOf(pause) < (toMs - fromMs - foldedMs) * foldedShare) break;
    folded.add(pause);
    foldedMs += lengthOf(pause);
  }
  const folds = pauses.filter((pause) => folded.has(pause));
  const unitsPerMs = (plot.width - folds.length * foldWidth) / Math.max(1, toMs - fromMs - foldedMs);
  const segments: Segment[] = [];
  let [atMs, x] = [fromMs, plot.x];
  const add = (endMs: number, isFolded: boolean) => {
    const width = isFolded ? foldWidth : (endMs - atMs) * unitsPerMs;
    if (endMs > atMs) segments.push({ fromMs: atMs, toMs: endMs, x, width, isFolded });
    [atMs, x] = [endMs, endMs > atMs ? x + width : x];
  };
  for (const fold of folds) {
    add(fold.fromMs, false);
    add(fold.toMs, true);
  }
  add(toMs, false);
  return segments;
}

const lengthOf = (part: Pick<Segment, 'fromMs' | 'toMs'>): number => part.toMs - part.fromMs;

/** Returns the place of a moment. Moments outside the axis are at its ends. */
export function placeOf(segments: readonly Segment[], ms: number): number {
  const segment = segments.find(({ toMs }) => ms <= toMs) ?? segments.at(-1);
  if (!segment) return 0;
  const share = (ms - segment.fromMs) / (segment.toMs - segment.fromMs);
  return segment.x + Math.max(0, Math.min(1, share)) * segment.width;
}
