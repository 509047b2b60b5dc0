/** Lines of the inspector's list, and the time axis of its drawing. */
import { describe, expect, test } from 'vitest';
import { attemptWords, callRows, type ListedCall } from '../../src/sandbox/pages/call-rows.ts';
import { placeOf, segmentsOf } from '../../src/sandbox/referee/time-scale.ts';
import { timelineOf } from '../../src/sandbox/referee/timeline.ts';

const startMs = Date.parse('2026-11-30T10:00:00.000Z');

function call(id: number, atMs: number, more: Partial<ListedCall> = {}): ListedCall {
  return {
    ...{ id, at: new Date(startMs + atMs).toISOString(), durationMs: 100, endpoint: 'upload.chunk', path: '/chunk' },
    ...{ status: 200, delivered: true, detail: {}, request: { headers: {} }, breaks: null, fault: null },
    ...more,
  };
}
const part = (id: number, atMs: number, partNumber: number, more: Partial<ListedCall> = {}) =>
  call(id, atMs, { detail: { partNumber }, ...more });
const poll = (id: number, atMs: number, more: Partial<ListedCall> = {}) =>
  call(id, atMs, {
    ...{ endpoint: 'operation.status', path: '/status', detail: { operationId: 'op', operationStatus: 'REQUESTED' } },
    ...more,
  });
/** Kind and ids of each line, from the top. */
const rowsOf = (calls: readonly ListedCall[]) =>
  callRows(calls.toReversed()).map(({ kind, calls: joined }) => `${kind} ${joined.map(({ id }) => id).join('+')}`);

describe('lines of the list', () => {
  test('attempts at a part are one line, in the place of the last, though another part came between them', () => {
    const cut = part(1, 0, 1, { delivered: false, status: null, fault: 'cut the connection' });
    expect(rowsOf([cut, part(2, 50, 2), part(3, 500, 1)])).toEqual(['attempts 1+3', 'call 2']);
    expect(attemptWords([cut, part(3, 500, 1)])).toBe('no answer (cut the connection), again after 0.4 s: 200');
  });

  test.each([500, 503, 429, 408])('a call that was answered %i is repeated: one line', (status) => {
    expect(rowsOf([part(1, 0, 1, { status }), part(2, 500, 1, { status }), part(3, 900, 1)])).toEqual([
      'attempts 1+2+3',
    ]);
  });

  test.each<[string, ListedCall[]]>([
    ['another part', [part(1, 0, 1, { status: 500 }), part(2, 500, 2)]],
    ['another path', [call(1, 0, { status: 500 }), call(2, 500, { path: '/other' })]],
    ['after a refusal', [part(1, 0, 1, { status: 400 }), part(2, 500, 1)]],
    ['after a success', [part(1, 0, 1), part(2, 500, 1)]],
    [
      'another upload',
      [
        part(1, 0, 1, { status: 500, detail: { partNumber: 1, uploadId: 'a' } }),
        part(2, 500, 1, { detail: { partNumber: 1, uploadId: 'b' } }),
      ],
    ],
    [
      'another idempotency key',
      [
        call(1, 0, { status: 500, request: { headers: { 'idempotency-key': 'a' } } }),
        call(2, 500, { request: { headers: { 'idempotency-key': 'b' } } }),
      ],
    ],
  ])('no attempt: %s', (_, calls) => {
    expect(rowsOf(calls)).toEqual(['call 2', 'call 1']);
  });

  test('an upload that began at the second attempt, though only the second answer names it', () => {
    const initiate = { endpoint: 'upload.initiate', path: '/initiate' };
    const [lost, begun] = [
      call(1, 0, { ...initiate, delivered: false }),
      call(2, 500, { ...initiate, detail: { uploadId: 'a' } }),
    ];
    expect(rowsOf([lost, begun])).toEqual(['attempts 1+2']);
  });

  test('many attempts are counted by their outcome', () => {
    const cut = (id: number) =>
      part(id, id * 1_000, 1, { delivered: false, status: null, fault: 'cut the connection' });
    const attempts = [...[0, 1, 2, 3].map(cut), part(4, 4_000, 1, { status: 503 }), part(5, 5_000, 1)];
    expect(attemptWords(attempts)).toBe('6 attempts in 4.9 s: no answer (cut the connection) × 4, 503 × 1, then 200');
  });

  test('polls without news are one line; a decision, a fault and a broken rule are not among them', () => {
    const decided = poll(6, 10_000, { detail: { operationId: 'op', operationStatus: 'APPROVED' } });
    expect(rowsOf([poll(1, 0), poll(2, 2_000), poll(3, 4_000), decided])).toEqual(['call 6', 'polls 1+2+3']);
    expect(rowsOf([poll(1, 0), poll(2, 500, { breaks: 'poll-interval' }), poll(3, 2_500)])).toEqual([
      ...['call 3', 'call 2', 'call 1'],
    ]);
    const delayed = poll(2, 2_000, {
      detail: { operationId: 'op', operationStatus: 'REQUESTED', fault: {} },
      fault: 'delayed',
    });
    expect(rowsOf([poll(1, 0), delayed])).toEqual(['call 2', 'call 1']);
    const ofAnother = poll(2, 2_000, { detail: { operationId: 'another', operationStatus: 'REQUESTED' } });
    expect(rowsOf([poll(1, 0), ofAnother])).toEqual(['call 2', 'call 1']);
    expect(rowsOf([poll(1, 0), call(2, 1_000), poll(3, 2_000)])).toEqual(['call 3', 'call 2', 'call 1']);
  });
});

describe('the time axis', () => {
  const plot = { x: 100, width: 1_000 };
  test('without a long pause it is even', () => {
    const segments = segmentsOf({ fromMs: 0, toMs: 10_000 }, [0, 2_000, 4_000, 6_000, 8_000, 10_000], plot);
    expect(segments).toEqual([{ fromMs: 0, toMs: 10_000, x: 100, width: 1_000, isFolded: false }]);
    expect([0, 2_500, 10_000].map((ms) => placeOf(segments, ms))).toEqual([100, 350, 1_100]);
    expect([-5, 99_000].map((ms) => placeOf(segments, ms))).toEqual([100, 1_100]);
  });

  test('a long pause is short, with a second before and after it in full', () => {
    const segments = segmentsOf({ fromMs: 0, toMs: 600_000 }, [0, 1_000, 599_000, 600_000], plot);
    expect(segments.map(({ fromMs, toMs, isFolded }) => [fromMs, toMs, isFolded])).toEqual([
      [0, 2_000, false],
      [2_000, 598_000, true],
      [598_000, 600_000, false],
    ]);
    expect(segments.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(1_000, 9);
    expect(segments[1]!.width).toBe(44);
    expect(placeOf(segments, 598_000)).toBeCloseTo(segments[2]!.x, 9);
  });

  test('a pause is short also if another is much longer', () => {
    const segments = segmentsOf({ fromMs: 0, toMs: 617_000 }, [0, 1_000, 78_000, 90_000, 617_000], plot);
    expect(segments.filter(({ isFolded }) => isFolded).map(({ fromMs, toMs }) => [fromMs, toMs])).toEqual([
      [2_000, 77_000],
      // Ten of the seventeen seconds that are left.
      [79_000, 89_000],
      [91_000, 616_000],
    ]);
  });

  test('a drawing with the moments of another has its pauses', () => {
    const window = { fromMs: startMs, toMs: startMs + 60_000 };
    const drawingOf = (calls: ListedCall[], alsoMs: number[] = []) => timelineOf(calls, [], { window, alsoMs })!;
    const [early, late] = [
      [call(1, 0), call(2, 5_000)],
      [call(1, 0), call(2, 58_000)],
    ];
    const moments = [...early, ...late].flatMap(({ at }) => [Date.parse(at), Date.parse(at) + 100]);
    const segments = drawingOf(early, moments).plot.segments;
    expect(segments.filter(({ isFolded }) => isFolded)).toHaveLength(1);
    expect(drawingOf(late, moments).plot.segments).toEqual(segments);
    expect(drawingOf(late).plot.segments).not.toEqual(segments);
  });

  test('labels after ten minutes and after hours differ', () => {
    for (const atMs of [0, 700_000, 7_000_000, 90_000_000]) {
      const calls = Array.from({ length: 11 }, (_, i) => call(i, atMs + i * 2_000));
      const window = { fromMs: startMs + atMs, toMs: startMs + atMs + 20_000 };
      const first = call(99, 0);
      const labels = timelineOf(calls, [], { window, lanesOf: [first, ...calls] })!.ticks.map(({ label }) => label);
      expect(labels.length).toBeGreaterThan(3);
      expect(new Set(labels).size).toBe(labels.length);
    }
  });

  test('a part in which nothing happened is drawn in full', () => {
    expect(segmentsOf({ fromMs: 0, toMs: 600_000 }, [], plot)).toHaveLength(1);
    expect(segmentsOf({ fromMs: 0, toMs: 600_000 }, [700_000], plot)).toHaveLength(1);
  });

  test('polls without news are in the pause, all other calls are drawn', () => {
    const polls = Array.from({ length: 50 }, (_, i) => poll(i + 2, 2_000 * (i + 1)));
    const decided = poll(60, 104_000, { detail: { operationId: 'op', operationStatus: 'APPROVED' } });
    const drawing = timelineOf([call(1, 0, { endpoint: 'operation.create' }), ...polls, decided], [])!;
    expect(drawing.folds).toMatchObject([{ label: '102 s', title: '102 s with 50 polls without news' }]);
    expect(drawing.marks.map(({ id }) => id)).toEqual([1, 60]);
    const judged = [{ rule: 'poll-interval', violations: [{ calls: [{ id: 20 }] }] }];
    const withBroken = timelineOf([call(1, 0, { endpoint: 'operation.create' }), ...polls, decided], judged)!;
    expect(withBroken.marks.find(({ id }) => id === 20)).toMatchObject({ kind: 'broken' });
    expect(withBroken.folds).toHaveLength(2);
  });
});
