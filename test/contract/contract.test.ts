import { wktGeometry } from '../../src/contract/geometry.ts';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { assumedProfile, limits, operationTransitions, sourceTypes } from '../../src/contract/index.ts';
import { projectRoot } from '../support/folders.ts';

test("the operation's transitions are those of the spec, section 3.1", () => {
  expect(operationTransitions).toEqual({
    REQUESTED: ['APPROVED', 'REJECTED', 'EXPIRED'],
    APPROVED: [],
    REJECTED: [],
    EXPIRED: [],
  });
});

test('limits and enumerations that the spec gives', () => {
  expect(limits.operationWindowMs).toBe(30 * 60 * 1000);
  expect(limits.pollIntervalMs).toEqual({ min: 2000, max: 5000 });
  expect(limits.downloadUrlMs).toBe(24 * 60 * 60 * 1000);
  expect(sourceTypes).toHaveLength(20);
});

test('what the client cannot do without is missed; everything else may be missing', () => {
  const { calls } = assumedProfile;
  expect(() => calls.createOperation.decode({ status: 'REQUESTED' })).toThrow();
  expect(() => calls.getOperation.decode({ operationId: 'x' })).toThrow();
  expect(() => calls.getOperation.decode({ status: 'PENDING' })).toThrow();
  expect(() => calls.initiateUpload.decode({ uploadId: 'x' })).toThrow();
  expect(calls.createOperation.decode({ operationId: 'x' })).toEqual({ operationId: 'x' });
  expect(calls.getOperation.decode({ status: 'APPROVED', name: {}, createdAt: null })).toEqual({ status: 'APPROVED' });
  expect(calls.userDetail.decode({ id: 7, email: 'e' })).toEqual({ id: '7', email: 'e' });
  expect(calls.createOperation.decode({ operationId: 12 })).toEqual({ operationId: '12' });
  expect(calls.renewToken.decode('')).toEqual({});
  expect(calls.completeUpload.decode('')).toEqual({});
});

test.each<[given: string | number, expected: string | undefined]>([
  ['2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.000Z'],
  ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
  ['2026-03-01T12:00:00.123456789Z', '2026-03-01T12:00:00.123Z'],
  ['2026-03-01T14:00:00+02:00', '2026-03-01T12:00:00.000Z'],
  [Date.UTC(2026, 2, 1, 12), '2026-03-01T12:00:00.000Z'],
  ['tomorrow', undefined],
])('the client reads the time %j', (given, expected) => {
  const { calls } = assumedProfile;
  expect(calls.renewToken.decode({ token: 't', expiresAt: given })).toEqual({ token: 't', expiresAt: expected });
});

test("the contract alone knows the platform's paths", async () => {
  const names = await readdir(join(projectRoot, 'src'), { recursive: true });
  for (const name of names.filter((file) => file.endsWith('.ts') && !file.startsWith('contract'))) {
    expect(await readFile(join(projectRoot, 'src', name), 'utf8'), name).not.toMatch(
      /['"`]\/public\/(external-app|file)/,
    );
  }
});

test.each([300, 3_300])('well-known text of %d collections in one another is refused at once', (depth) => {
  const text = `${'GEOMETRYCOLLECTION('.repeat(depth)}POINT(1 2)${')'.repeat(depth)}`;
  expect(wktGeometry.safeParse(text).success).toBe(false);
});

test('well-known text of collections of multipolygons reads', () => {
  const text = 'GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))))';
  expect(wktGeometry.parse(text)).toMatchObject({ geometries: [{ geometries: [{ type: 'MultiPolygon' }] }] });
});
