/** Judges call sequences on both sides of each rule's limits, and compares the verdicts with expected ones. */
import { describe, expect, test } from 'vitest';
import { judge, type Missing } from '../../src/sandbox/referee/verdict.ts';
import type { CallDetail, TracedCall } from '../../src/sandbox/referee/traced-call.ts';

type Endpoint = TracedCall['endpoint'];
interface Row {
  /** Time since the first call, ms. */
  readonly at: number;
  readonly endpoint: Endpoint;
  readonly detail?: CallDetail;
  readonly status?: number | null;
  readonly delivered?: boolean;
  readonly takesMs?: number;
}

const startMs = 1_700_000_000_000;
function callsOf(rows: readonly Row[]): TracedCall[] {
  return rows
    .map(({ at, endpoint, detail = {}, status = 200, delivered = true, takesMs = 5 }, i) => ({
      id: i + 1,
      at: startMs + at,
      endedAt: startMs + at + takesMs,
      endpoint,
      status,
      delivered,
      detail,
    }))
    .sort((a, b) => a.at - b.at || a.id - b.id);
}

/** Returns the rules that failed or warned. */
function found(rows: readonly Row[], missing?: Missing): string[] {
  const { rules, advisories } = judge(callsOf(rows), missing);
  return [...rules, ...advisories]
    .filter(({ result }) => result === 'failed' || result === 'warning')
    .map(({ rule, result }) => `${rule}: ${result}`);
}

const op = { operationId: 'op' };
const create = (at: number, more: Partial<Row> = {}): Row => ({
  at,
  endpoint: 'operation.create',
  detail: op,
  ...more,
});
const poll = (
  at: number,
  operationStatus: CallDetail['operationStatus'] = 'REQUESTED',
  more: Partial<Row> = {},
): Row => ({
  at,
  endpoint: 'operation.status',
  ...more,
  detail: { ...op, operationStatus, ...more.detail },
});
const approved = { ...op, operationStatus: 'APPROVED' } as const;
const pair = { uploadId: 'u1', key: 'k1' };
const initiate = (at: number, more: Partial<Row> = {}): Row => ({
  at,
  endpoint: 'upload.initiate',
  ...more,
  detail: { ...approved, ...pair, ...more.detail },
});
const chunk = (at: number, partNumber: number, more: Partial<Row> = {}): Row => ({
  at,
  endpoint: 'upload.chunk',
  ...more,
  detail: { ...approved, ...pair, partNumber, size: 100, ...more.detail },
});
/** A chunk that the sandbox refused before it knew its size. */
const refused = (at: number, partNumber: number, code: string, status: number): Row => ({
  ...chunk(at, partNumber),
  status,
  detail: { ...approved, ...pair, partNumber, code },
});
const complete = (at: number, fileSize: number, more: Partial<Row> = {}): Row => ({
  at,
  endpoint: 'upload.complete',
  ...more,
  detail: { ...approved, ...pair, fileSize, fileId: 'file', ...more.detail },
});
const begun = [create(0), poll(2_500), poll(5_000, 'APPROVED'), initiate(6_000)];
const whole = [...begun, chunk(6_100, 1), chunk(6_200, 2), complete(6_300, 200)];
const none = { uploadId: 'made', key: 'up' };

describe('a verdict', () => {
  test.each<[what: string, rows: readonly Row[], expected: readonly string[]]>([
    ['an app that does all right', whole, []],
    // poll-interval
    ['polls 1,800 ms apart', [create(0), poll(2_000), poll(3_800)], []],
    ['polls 1,799 ms apart', [create(0), poll(2_000), poll(3_799)], ['poll-interval: failed']],
    ['polls 5,205 ms apart', [create(0), poll(2_000), poll(7_205)], []],
    ['polls 5,206 ms apart', [create(0), poll(2_000), poll(7_206)], ['poll-interval: warning']],
    ['a poll at once after one that failed', [create(0), poll(2_000, 'REQUESTED', { status: 500 }), poll(2_100)], []],
    ['a poll at once after one that was lost', [create(0), poll(2_000, 'REQUESTED', { delivered: false }), poll(2_100)], []],
    ['polls that a late sandbox took up together', [create(0), poll(16_000, 'REQUESTED', { detail: { heldMs: 14_000, lateMs: 14_000 } }), poll(16_100)], []],
    ['a poll too early that a late sandbox took up later', [create(0), poll(2_000), poll(3_500, 'REQUESTED', { detail: { lateMs: 900 } })], ['poll-interval: failed']],
    ['a poll that waited for a late sandbox', [create(0), poll(2_000), poll(18_000, 'REQUESTED', { detail: { lateMs: 14_000 } })], []],
    ['a poll after a restart of the sandbox', [create(0), poll(2_000), poll(9_000, 'REQUESTED', { detail: { awayMs: 6_500 } })], []],
    // poll-stops
    ['one re-read after the decision', [create(0), poll(2_500, 'APPROVED'), poll(5_000, 'APPROVED')], []],
    ['two polls after the decision', [create(0), poll(2_500, 'APPROVED'), poll(5_000, 'APPROVED'), poll(7_500, 'APPROVED')], ['poll-stops: failed']],
    ['polls after a decision that was lost', [create(0), ...[2_500, 5_000, 7_500].map((at) => poll(at, 'APPROVED', { delivered: false })), poll(10_000, 'APPROVED')], []],
    ['polls after a decision that a late sandbox took up', [create(0), ...[9_000, 9_005, 9_010].map((at) => poll(at, 'APPROVED', { detail: { heldMs: 8_000 } })), poll(11_500, 'APPROVED')], []],
    ['made-up names before the approval', [create(0), poll(2_500), chunk(3_000, 1, { status: 404, detail: { ...none, operationStatus: 'REQUESTED' } })], ['upload-after-approval: failed']],
    // upload-after-approval
    ['an upload before the approval', [create(0), poll(2_500), initiate(3_000)], ['upload-after-approval: failed']],
    ['an upload that began while the approval was told', [create(0), poll(2_500, 'APPROVED', { takesMs: 500 }), initiate(2_999)], ['upload-after-approval: failed']],
    ['an upload right after the approval', [create(0), poll(2_500, 'APPROVED', { takesMs: 500 }), initiate(3_000)], []],
    ['an upload after an approval of another operation', [create(0), poll(2_500, 'APPROVED', { detail: { operationId: 'other' } }), initiate(3_000)], ['upload-after-approval: failed']],
    // upload-identity
    ['an app that never initiates', [...begun.slice(0, 3), chunk(6_000, 1, { detail: none, status: 404 }), complete(6_100, 100, { detail: { ...none }, status: 404 })], ['upload-identity: failed']],
    ['made-up names after a completed upload', [...whole, chunk(7_000, 1, { detail: none, status: 404 })], ['upload-identity: failed']],
    ['made-up names while two uploads are under way', [...begun, initiate(6_050, { detail: { uploadId: 'u2', key: 'k2' } }), chunk(6_100, 1, { detail: none, status: 404 })], ['upload-identity: failed']],
    ['the key of another upload', [...begun, initiate(6_050, { detail: { uploadId: 'u2', key: 'k2' } }), chunk(6_100, 1, { detail: { key: 'k2' }, status: 404 })], ['upload-identity: failed']],
    // chunk-order
    ['chunk 1 and 3', [...begun, chunk(6_100, 1), chunk(6_200, 3)], ['chunk-order: failed']],
    ['a chunk again', [...begun, chunk(6_100, 1), chunk(6_150, 1), chunk(6_200, 2), complete(6_300, 200)], []],
    ['a chunk while the one before is under way', [...begun, chunk(6_100, 1, { takesMs: 100 }), chunk(6_199, 2)], ['chunk-order: failed']],
    ['a chunk when the one before is answered', [...begun, chunk(6_100, 1, { takesMs: 100 }), chunk(6_200, 2), complete(6_300, 200)], []],
    ['complete while a chunk is under way', [...begun, chunk(6_100, 1, { takesMs: 100 }), complete(6_199, 100)], ['chunk-order: failed']],
    ['going on over a chunk that found no room', [...begun, chunk(6_100, 1), refused(6_200, 2, 'insufficient_storage', 500), chunk(6_300, 3), complete(6_400, 300)], ['chunk-order: failed']],
    ['going on over a chunk that was refused as empty', [...begun, chunk(6_100, 1), refused(6_200, 2, 'validation_failed', 400), complete(6_400, 100)], []],
    ['a chunk again after there was no room', [...begun, chunk(6_100, 1), refused(6_200, 2, 'insufficient_storage', 500), chunk(6_250, 2), complete(6_400, 200)], []],
    ['a chunk whose answer was lost', [...begun, chunk(6_100, 1), chunk(6_200, 2, { status: null, delivered: false }), complete(6_400, 200)], []],
    ['complete of more bytes than came', [...begun, chunk(6_100, 1), complete(6_400, 200)], ['chunk-order: failed']],
    ['other bytes for a chunk', [...begun, chunk(6_100, 1), refused(6_200, 1, 'chunk_conflict', 409)], ['chunk-order: failed']],
    // no-work-after-refusal
    ['an upload after the rejection', [create(0), poll(2_500, 'REJECTED'), initiate(3_000, { status: 403, detail: { operationStatus: 'REJECTED' } })], ['no-work-after-refusal: failed']],
    ['made-up names after the rejection', [create(0), poll(2_500, 'REJECTED'), chunk(3_000, 1, { status: 404, detail: { ...none, operationStatus: 'REJECTED' } })], ['no-work-after-refusal: failed']],
    // token-scope
    ['the old token after its successor', [create(0), poll(2_500, 'REQUESTED', { detail: { tokenNumber: 2 } }), poll(5_000, 'REQUESTED', { detail: { tokenNumber: 1 } })], ['token-scope: failed']],
    ['the old token after its successor came with a wrong key', [create(0), poll(2_500, 'REQUESTED', { status: 403, detail: { tokenNumber: 2, code: 'authentication_failed' } }), poll(5_000, 'REQUESTED', { detail: { tokenNumber: 1 } })], []],
    ['an operation of another launch', [create(0), poll(2_500, 'REQUESTED', { status: 404, detail: { foreign: 'operation' } })], ['token-scope: failed']],
    // retry-after
    ['the same call 800 ms after Retry-After: 1', [create(0, { status: 429, detail: { retryAfterSeconds: 1 } }), create(800)], []],
    ['the same call 799 ms after Retry-After: 1', [create(0, { status: 429, detail: { retryAfterSeconds: 1 } }), create(799)], ['retry-after: warning']],
    ['another upload meanwhile', [...begun, chunk(6_100, 1, { status: 503, detail: { retryAfterSeconds: 9 } }), chunk(6_200, 1, { detail: { uploadId: 'u2', key: 'k2' } })].concat(initiate(6_001, { detail: { uploadId: 'u2', key: 'k2' } })), []],
    // one-operation
    ['a second operation, and the first is left', [create(0), create(1_000, { detail: { operationId: 'next' } }), ...[3_500, 6_000].map((at) => poll(at, 'REQUESTED', { detail: { operationId: 'next' } }))], ['one-operation: warning']],
    ['a second operation after a lost answer', [create(0, { delivered: false, status: 200 }), create(1_000, { detail: { operationId: 'next' } }), ...[3_500, 6_000].map((at) => poll(at, 'APPROVED', { detail: { operationId: 'next' } }))], ['one-operation: warning']],
    ['a third operation, and the first two are left', [create(0), create(1_000, { detail: { operationId: 'next' } }), create(2_000, { detail: { operationId: 'third' } }), ...[4_500, 7_000].map((at) => poll(at, 'REQUESTED', { detail: { operationId: 'third' } }))], ['one-operation: warning']],
    ['the same operation again after a lost answer', [create(0, { delivered: false, status: 200 }), create(1_000), poll(3_500), poll(6_000)], []],
    ['two operations, each polled', [create(0), create(1_000, { detail: { operationId: 'next' } }), ...[3_500, 6_000].flatMap((at) => [poll(at), poll(at + 1_000, 'REQUESTED', { detail: { operationId: 'next' } })])], []],
    ['a second operation just now', [create(0), poll(2_500), create(3_000, { detail: { operationId: 'next' } }), poll(5_500, 'REQUESTED', { detail: { operationId: 'next' } })], []],
    ['a second operation after the first was rejected', [create(0), poll(2_500, 'REJECTED'), create(3_000, { detail: { operationId: 'next' } }), ...[5_500, 8_000].map((at) => poll(at, 'REQUESTED', { detail: { operationId: 'next' } }))], []],
    // further edges of each rule
    ['a first poll at once', [create(0), poll(100), poll(2_600)], []],
    ['polls of two operations in turn', [create(0), poll(2_000), poll(3_000, 'REQUESTED', { detail: { operationId: 'other' } }), poll(4_500), poll(5_500, 'REQUESTED', { detail: { operationId: 'other' } })], []],
    ['a poll soon after the answer of a slow one', [create(0), poll(2_000, 'REQUESTED', { takesMs: 3_000 }), poll(5_100)], []],
    ['a poll 5,200 ms after the answer of a slow one', [create(0), poll(2_000, 'REQUESTED', { takesMs: 4_000 }), poll(11_200)], []],
    ['a poll 5,201 ms after the answer of a slow one', [create(0), poll(2_000, 'REQUESTED', { takesMs: 4_000 }), poll(11_201)], ['poll-interval: warning']],
    ['1,300 ms after a poll that was held for 500', [create(0), poll(2_000, 'REQUESTED', { detail: { heldMs: 500 } }), poll(3_300)], []],
    ['1,299 ms after a poll that was held for 500', [create(0), poll(2_000, 'REQUESTED', { detail: { heldMs: 500 } }), poll(3_299)], ['poll-interval: failed']],
    ['a late poll of a sandbox that was late by 199 ms', [create(0), poll(2_000), poll(7_206, 'REQUESTED', { detail: { lateMs: 199 } })], ['poll-interval: warning']],
    ['a late poll of a sandbox that was late by 200 ms', [create(0), poll(2_000), poll(7_206, 'REQUESTED', { detail: { lateMs: 200 } })], []],
    ['a late poll of a sandbox that was away for 200 ms', [create(0), poll(2_000), poll(7_206, 'REQUESTED', { detail: { awayMs: 200 } })], []],
    ['a poll at once after one that was refused', [create(0), poll(2_000, 'REQUESTED', { status: 403, detail: { code: 'token_expired' } }), poll(2_050)], []],
    ['a poll at once after a rate limit without Retry-After', [create(0), poll(2_000, 'REQUESTED', { status: 429 }), poll(2_050)], []],
    ['an early poll among many', [create(0), ...[2_500, 5_000, 7_500, 9_000, 11_500].map((at) => poll(at))], ['poll-interval: failed']],
    ['one re-read after the rejection', [create(0), poll(2_500, 'REJECTED'), poll(5_000, 'REJECTED')], []],
    ['two polls after the rejection', [create(0), poll(2_500, 'REJECTED'), poll(5_000, 'REJECTED'), poll(7_500, 'REJECTED')], ['poll-stops: failed']],
    ['two polls after the expiry', [create(0), poll(2_500, 'EXPIRED'), poll(5_000, 'EXPIRED'), poll(7_500, 'EXPIRED')], ['poll-stops: failed']],
    ['re-reads that failed', [create(0), poll(2_500, 'APPROVED'), poll(5_000, 'APPROVED', { status: 500 }), poll(7_500, 'APPROVED', { status: 429 }), poll(10_000, 'APPROVED')], []],
    ['re-reads with a token that had expired', [create(0), poll(2_500, 'APPROVED'), poll(5_000, 'APPROVED', { status: 403, detail: { code: 'token_expired' } }), poll(7_500, 'APPROVED')], []],
    ['polls of another operation after the decision', [create(0), poll(2_500, 'APPROVED'), ...[5_000, 7_500, 10_000].map((at) => poll(at, 'REQUESTED', { detail: { operationId: 'other' } }))], []],
    ['an upload that was refused before the approval', [create(0), poll(2_500), initiate(3_000, { status: 403, detail: { operationStatus: 'REQUESTED', code: 'operation_not_approved' } })], ['upload-after-approval: failed']],
    ['an upload without any poll', [create(0), initiate(3_000)], ['upload-after-approval: failed']],
    ['an upload after the second poll said so', [create(0), poll(2_500), poll(5_000, 'APPROVED'), initiate(5_005)], []],
    ['two uploads of one operation, one after the other', [...whole, initiate(7_000, { detail: { uploadId: 'u2', key: 'k2' } }), chunk(7_100, 1, { detail: { uploadId: 'u2', key: 'k2' } }), complete(7_200, 100, { detail: { uploadId: 'u2', key: 'k2' } })], []],
    ['complete by another key', [...begun, chunk(6_100, 1), complete(6_200, 100, { status: 404, detail: { key: 'other' } })], ['upload-identity: failed']],
    ['complete by another upload', [...begun, chunk(6_100, 1), complete(6_200, 100, { status: 404, detail: { uploadId: 'other' } })], ['upload-identity: failed']],
    ['chunks from 0 on', [...begun, chunk(6_100, 0, { status: 400 }), chunk(6_200, 1), complete(6_300, 100)], ['chunk-order: failed']],
    ['chunks from 2 on', [...begun, chunk(6_100, 2)], ['chunk-order: failed']],
    ['a chunk three times', [...begun, chunk(6_100, 1), chunk(6_150, 1), chunk(6_200, 1), complete(6_300, 100)], []],
    ['an earlier chunk again', [...begun, chunk(6_100, 1), chunk(6_150, 2), chunk(6_200, 1), chunk(6_250, 3), complete(6_300, 300)], []],
    ['complete twice', [...whole, complete(6_400, 200)], []],
    ['complete of fewer bytes than came', [...begun, chunk(6_100, 1), complete(6_200, 50, { status: 400 })], []],
    ['complete without a chunk', [...begun, complete(6_200, 100, { status: 400 })], ['chunk-order: failed']],
    ['a further chunk after complete', [...whole, chunk(6_400, 3, { status: 409, detail: { code: 'upload_completed' } })], ['chunk-order: failed']],
    ['the same chunk after complete', [...whole, chunk(6_400, 1)], []],
    ['other bytes after complete', [...whole, chunk(6_400, 1, { status: 409, detail: { code: 'upload_completed' } })], ['chunk-order: failed']],
    ['complete after a chunk that was cut', [...begun, chunk(6_100, 1), chunk(6_200, 2, { status: null, delivered: false, detail: { size: undefined as never } }), complete(6_300, 200, { status: 400 })], ['chunk-order: failed']],
    ['a chunk again that was cut', [...begun, chunk(6_100, 1), chunk(6_200, 2, { status: null, delivered: false, detail: { size: undefined as never } }), chunk(6_250, 2), complete(6_300, 200)], []],
    ['another operation after the rejection', [create(0), poll(2_500, 'REJECTED'), create(5_000, { detail: { operationId: 'next' } }), poll(7_500, 'APPROVED', { detail: { operationId: 'next' } }), initiate(8_000, { detail: { operationId: 'next' } })], []],
    ['a chunk after the expiry', [create(0), poll(2_500, 'EXPIRED'), chunk(3_000, 1, { status: 403, detail: { operationStatus: 'EXPIRED' } })], ['no-work-after-refusal: failed']],
    ['the token and its successor, each in its time', [create(0), poll(2_500, 'REQUESTED', { detail: { tokenNumber: 1 } }), poll(5_000, 'REQUESTED', { detail: { tokenNumber: 2 } }), poll(7_500, 'REQUESTED', { detail: { tokenNumber: 2 } })], []],
    ['an upload of another launch', [...begun, chunk(6_100, 1, { status: 404, detail: { foreign: 'upload' } })], ['token-scope: failed']],
    ['a key of another launch', [...begun, chunk(6_100, 1, { status: 404, detail: { foreign: 'key' } })], ['token-scope: failed']],
    ['a 500 with Retry-After', [create(0, { status: 500, detail: { retryAfterSeconds: 9 } }), create(100)], []],
    ['a 503 with Retry-After', [create(0, { status: 503, detail: { retryAfterSeconds: 9 } }), create(100)], ['retry-after: warning']],
    ['a 429 whose answer was lost', [create(0, { status: 429, delivered: false, detail: { retryAfterSeconds: 9 } }), create(100)], []],
    ['a poll after the 429 of another operation', [create(0), poll(2_000, 'REQUESTED', { status: 429, detail: { retryAfterSeconds: 9 } }), poll(2_500, 'REQUESTED', { detail: { operationId: 'other' } })], []],
    ['data of an item before the approval', [create(0), { at: 1_000, endpoint: 'stac.data', detail: { ...op, itemId: 'i', operationStatus: 'REQUESTED' } }], ['no-data-before-approval: warning']],
    ['data of an item after the approval', [create(0), poll(2_500, 'APPROVED'), { at: 3_000, endpoint: 'stac.data', detail: { ...approved, itemId: 'i' } }], []],
  ])('%s', (_what, rows, expected) => {
    expect(found(rows)).toEqual(expected);
  }); // oxfmt-ignore

  test('each operation that was left is a violation, and the words say whether it was asked for', () => {
    const other = (operationId: string) => ({ detail: { operationId } });
    const rows = [
      ...[create(0), poll(2_500), create(3_000, other('second')), create(4_000, other('third'))],
      ...[6_500, 9_000].map((at) => poll(at, 'REQUESTED', other('third'))),
    ];
    const found = judge(callsOf(rows)).advisories.find(({ rule }) => rule === 'one-operation');
    expect(found?.violations.map(({ seen }) => seen.slice(-19))).toEqual([
      'last seen REQUESTED',
      'was never asked for',
    ]);
  });

  test.each<[what: string, rows: readonly Row[], expected: string, advice: RegExp]>([
    ['a new upload in the middle', [...begun, chunk(6_100, 1), initiate(6_200, { detail: { uploadId: 'u2', key: 'k2' } }), chunk(6_300, 2, { status: 409, detail: { uploadId: 'u2', key: 'k2' } })], 'the uploadId and key of those parts', /send all parts again, from 1 on/],
    ['a wrong size', [...begun, chunk(6_100, 1), chunk(6_200, 2), complete(6_300, 205)], 'a fileSize that is the sum of all parts', /as fileSize, which was 200/],
    ['names of nobody', [...begun, chunk(6_100, 1, { status: 404, detail: { uploadId: 'x', key: 'y' } })], 'both as initiate answered them', /Keep the uploadId and key/],
  ])('%s: the advice says what to change', (_what, rows, expected, advice) => {
    const violations = judge(callsOf(rows)).rules.flatMap((rule) => rule.violations);
    expect(violations[0]).toMatchObject({ expected, advice: expect.stringMatching(advice) as string });
  }); // oxfmt-ignore

  test.each<[what: string, rows: readonly Row[]]>([
    ['an app that does all right', whole],
    ['an app that uploads too early', [create(0), poll(2_500), initiate(3_000)]],
    ['an app that never initiates', [...begun.slice(0, 3), chunk(6_000, 1, { detail: none, status: 404 })]],
    ['an app that leaves out a chunk', [...begun, chunk(6_100, 1), chunk(6_200, 3), complete(6_300, 200)]],
  ])('%s: reads and other operations beside it change nothing', (_what, rows) => {
    const wanted = found(rows);
    for (let seed = 1; seed <= 50; seed++) {
      const beside: Row[] = Array.from({ length: 5 }, (_, i) => ({
        at: ((seed * 7_919 + i * 1_277) % 70) * 100 + 3,
        endpoint: (['user.detail', 'stac.browse', 'file.status'] as const)[(seed + i) % 3]!,
        status: (seed + i) % 4 === 0 ? 500 : 200,
      }));
      const other: Row = poll((seed * 311) % 7_000, 'REQUESTED', { detail: { operationId: 'another' } });
      expect(found([...rows, ...beside, other]), `seed ${seed}`).toEqual(wanted);
    }
  });

  describe('where calls are missing', () => {
    const late = [poll(5_000, 'APPROVED'), initiate(6_000), chunk(6_100, 3)];
    test('what forgotten calls would prove counts for nobody', () => {
      const kept = [chunk(6_100, 1), chunk(6_200, 2), complete(6_300, 200)];
      expect(found(kept)).toEqual(['upload-after-approval: failed', 'upload-identity: failed']);
      expect(found(kept, { gaps: [], cutCalls: 1, kept: [] })).toEqual([]);
    });
    test('an operation that is kept from its creation on is judged', () => {
      expect(found([create(1), poll(2_500), initiate(3_000)], { gaps: [], cutCalls: 1, kept: [] })).toEqual([
        'upload-after-approval: failed',
      ]);
    });
    test('a gap in the middle of an operation', () => {
      const rows = [create(0), ...late];
      expect(found(rows)).toEqual(['chunk-order: failed']);
      expect(found(rows, { gaps: [startMs + 4_000], cutCalls: 0, kept: [] })).toEqual([]);
      expect(found(rows, { gaps: [startMs - 4_000, startMs + 60_000], cutCalls: 0, kept: [] })).toEqual([
        'chunk-order: failed',
      ]);
    });
  });

  test.each<[what: string, rows: (count: number) => readonly Row[]]>([
    ['an app that does not heed Retry-After', (n) => Array.from({ length: n }, (_, i) => create(i, { status: 429, takesMs: 0.5, detail: { retryAfterSeconds: 60 } }))],
    ['calls of many uploads that are refused', (n) => Array.from({ length: n }, (_, i) => chunk(i, 1, { status: 429, detail: { uploadId: `u${i}`, retryAfterSeconds: 60 } }))],
    ['many uploads that begin in the middle', (n) => Array.from({ length: n / 2 }, (_, i) => [initiate(i, { detail: { uploadId: `u${i}`, key: `k${i}` } }), chunk(i, 2, { detail: { uploadId: `u${i}`, key: `k${i}` } })]).flat()],
    ['many uploads that each continue another', (n) => [...Array.from({ length: n / 4 }, (_, i) => [initiate(i, { detail: { uploadId: `a${i}`, key: `b${i}` } }), chunk(i, 1, { detail: { uploadId: `a${i}`, key: `b${i}` } })]), ...Array.from({ length: n / 4 }, (_, i) => [initiate(n + i, { detail: { uploadId: `u${i}`, key: `k${i}` } }), chunk(n + i, 2, { detail: { uploadId: `u${i}`, key: `k${i}` } })])].flat()],
    ['one upload that is completed again and again', (n) => [...begun, ...Array.from({ length: n / 2 }, (_, i) => [chunk(7_000 + i, i + 1), complete(7_000 + i, 1e9, { detail: { fileId: undefined as never } })]).flat()]],
    ['many operations', (n) => Array.from({ length: n }, (_, i) => poll(i, 'APPROVED', { detail: { operationId: `op${i}` } }))],
    ['many tokens', (n) => Array.from({ length: n }, (_, i) => poll(i * 2_500, 'REQUESTED', { detail: { tokenNumber: i } }))],
    ['violations beside many gaps', (n) => Array.from({ length: n }, (_, i) => chunk(i, i + 2))],
  ])('is one pass: %s', { timeout: 120_000 }, (_what, rows) => {
    // A rule that searches all calls for each call takes minutes.
    const gaps = Array.from({ length: 1_000 }, (_, i) => startMs - 2_000 + i);
    expect(judge(callsOf(rows(200_000)), { gaps, cutCalls: 0, kept: [] }).result).toBeTypeOf('string');
  }); // oxfmt-ignore
});
