import { expect, test } from 'vitest';
import { readWireChanges } from '../../src/contract/index.ts';
import { didYouMean } from '../../src/contract/did-you-mean.ts';

test.each([
  ['bandb', ['bandA', 'bandB'], '. Did you mean bandB?'],
  ['limt', ['limit', 'offset'], '. Did you mean limit?'],
  ['createOperatoin', ['createOperation', 'getOperation'], '. Did you mean createOperation?'],
  ['--stpe', ['--step', '--set'], '. Did you mean --step?'],
  ['lwir11', ['swir16', 'nir'], ''],
  ['nope', ['bandA', 'bandB'], ''],
  ['x', [], ''],
])('%s of %j', (given, known, wanted) => {
  expect(didYouMean(given, known)).toBe(wanted);
});

test.each([
  [
    { calls: { createOperatoin: {} } },
    /calls\.createOperatoin is not known; known are renewToken, .*\. Did you mean createOperation\?/,
  ],
  [{ limit: {} }, /limit is not known; known are name, .*\. Did you mean limits\?/],
])('a wire profile with %j names what is known', (changes, message) => {
  expect(() => readWireChanges({ name: 'x', ...changes })).toThrow(message);
});
