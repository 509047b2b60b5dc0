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

test("the contract alone knows the platform's paths", async () => {
  const names = await readdir(join(projectRoot, 'src'), { recursive: true });
  for (const name of names.filter((file) => file.endsWith('.ts') && !file.startsWith('contract'))) {
    expect(await readFile(join(projectRoot, 'src', name), 'utf8'), name).not.toMatch(
      /['"`]\/public\/(external-app|file)/,
    );
  }
});
