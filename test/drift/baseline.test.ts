/** Drift compares with its own sandbox: without a whole baseline there is no verdict, and no exchange of one side is left out. */
import { expect, test } from 'vitest';
import { asProbed, baselineProblem, compare, unseenOf, type Observations } from '../../src/drift/compare.ts';
import { reportText, type DriftReport } from '../../src/drift/report.ts';
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

test('a platform without request ids is one line of the report, and another fact one of each exchange', () => {
  const names = ['catalog/root', 'catalog/child', 'get-item/by id', 'get-item/unknown'];
  const withHeaders = (facts: Record<string, string>): Observations => ({
    exchanges: names.map((name) => ({ ...exchange(name), facts: { status: '200', ...facts } })),
    missing: {},
  });
  const sandbox = withHeaders({ 'header.x-request-id': 'some', 'header.accept-ranges': 'bytes' });
  const share = { seen: 0, all: 0, missing: [] };
  const report = {
    ...{
      platform: 'p',
      level: 'read',
      result: 'differs',
      gone: [],
      unmade: [],
      unseen: [],
      assumptions: [],
      missing: {},
    },
    differences: compare(sandbox, withHeaders({})),
    coverage: { operations: share, statuses: share, fields: share },
  } as unknown as DriftReport;
  const lines = reportText(report, []).split('\n');
  expect(lines.filter((line) => line.includes('x-request-id'))).toEqual([
    'DIFFERS  header.x-request-id: expected some, and it is not there',
  ]);
  expect(lines).toContain('    in 4 exchanges: catalog/root, catalog/child, get-item/by id, ...');
  expect(lines.filter((line) => line.includes('accept-ranges'))).toHaveLength(4);
});

test('the calls of an app are compared with the first successful exchange of the same call', () => {
  const of = (name: string, call: Exchange['call'], status = '200'): Exchange => ({
    ...exchange(name),
    call,
    facts: { status },
  });
  const sandbox = {
    exchanges: [of('get-operation/unknown', 'getOperation', '404'), of('get-operation/requested', 'getOperation')],
    missing: {},
  };
  const app = {
    exchanges: [of('observed/getOperation', 'getOperation', '201'), of('observed/listModels', 'listModels')],
    missing: {},
  };
  const found = asProbed(app, sandbox);
  expect(found.exchanges.map(({ name }) => name)).toEqual(['get-operation/requested']);
  expect(compare(sandbox, found)).toMatchObject([
    { exchange: 'get-operation/requested', fact: 'status', expected: '200', found: '201' },
  ]);
});
