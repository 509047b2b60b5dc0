import { expect, test } from 'vitest';
import { mergeJson } from '../../src/upgrade/merge-json.ts';

const text = (value: object) => JSON.stringify(value);

test('what each side added, changed or removed is in it, however near the lines are', () => {
  const merged = mergeJson(
    text({ name: 'kit', version: '1', files: ['a'], dependencies: { ajv: '8', axios: '1' } }),
    text({ name: 'ours', version: '1', files: ['a'], dependencies: { 'our-lib': '1', ajv: '8', axios: '1' } }),
    text({ name: 'kit', version: '2', files: ['a', 'b'], dependencies: { axios: '2' }, type: 'module' }),
  );
  expect(JSON.parse(merged!)).toEqual({
    name: 'ours',
    version: '2',
    files: ['a', 'b'],
    dependencies: { axios: '2', 'our-lib': '1' },
    type: 'module',
  });
  expect(Object.keys(JSON.parse(merged!) as object)).toEqual(['name', 'version', 'files', 'dependencies', 'type']);
});

test('what the fork calls itself stays, whatever the kit calls its next release', () => {
  const merged = mergeJson(
    text({ name: 'kit', version: '1', dependencies: { ajv: '8' } }),
    text({ name: 'ours', version: '0.0.7', dependencies: { ajv: '8', 'our-lib': '1' } }),
    text({ name: 'kit', version: '2', dependencies: {} }),
  );
  expect(JSON.parse(merged!)).toEqual({ name: 'ours', version: '0.0.7', dependencies: { 'our-lib': '1' } });
  expect(mergeJson('{}', '\ufeff{ broken', '{}')).toBeNull();
});

test.each([
  ['both changed a field', { a: '1' }, { a: '2' }, { a: '3' }],
  ['one changed what the other removed', { a: '1' }, {}, { a: '3' }],
  ['both changed a list', { a: [1] }, { a: [1, 2] }, { a: [1, 3] }],
  ['both added a field', {}, { a: '2' }, { a: '3' }],
])('a person decides where %s', (_, base, mine, kits) => {
  expect(mergeJson(text(base), text(mine), text(kits))).toBeNull();
});
