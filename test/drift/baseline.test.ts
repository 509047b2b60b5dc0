/** Drift compares with its own sandbox: without a whole baseline there is no verdict, and no exchange of one side is left out. */
import { expect, test } from 'vitest';
import { baselineProblem, compare, unseenOf, type Observations } from '../../src/drift/compare.ts';
import type { Exchange } from '../../src/drift/target.ts';

const exchange = (name: string): Exchange => ({
  ...{
    name,
    call: null,
    method: 'GET',
    path: '/',
    requestBody: null,
    responseBody: '',
    unreadable: null,
    isOfApp: false,
  },
  facts: { status: '200' },
});
const seen = (names: readonly string[], missing: Observations['missing'] = {}): Observations => ({
  exchanges: names.map(exchange),
  missing,
});

test('an empty baseline, or one that lacks a probe of the level, is a problem with its reasons', () => {
  expect(baselineProblem(seen([]), 'read')).toMatch(/^the sandbox of this command could not be probed/);
  const lacking = seen(['catalog/root'], {
    'get-item': 'nothing came for 600 s',
    'user-detail': 'it needs --level launch',
  });
  expect(baselineProblem(lacking, 'read')).toContain('\n  get-item: nothing came for 600 s\nRun drift again.');
  expect(baselineProblem(lacking, 'read')).not.toContain('user-detail');
});

test('a whole baseline is none', () => {
  expect(baselineProblem(seen(['catalog/root'], { 'user-detail': 'it needs --level launch' }), 'read')).toBe(null);
});

test('an exchange of the sandbox alone was not observed, and one of the platform alone is more than expected', () => {
  const [sandbox, platform] = [seen(['catalog/root', 'catalog/child', 'get-item/by id']), seen(['catalog/root', 'catalog/more'], { 'get-item': 'no item was found' })]; // oxfmt-ignore
  expect(unseenOf(sandbox, platform)).toEqual(['catalog/child: the platform, or its record, has no such exchange']);
  expect(compare(sandbox, platform)).toMatchObject([
    { exchange: 'catalog/more', fact: 'exchange', expected: null, found: 'made', verdict: 'richer' },
  ]);
});

test('a status that was polled more often on one side is no difference', () => {
  const [few, many] = [seen(['poll/status']), seen(['poll/status', 'poll/status', 'poll/status'])];
  expect([compare(few, many), compare(many, few), unseenOf(many, few)]).toEqual([[], [], []]);
});
