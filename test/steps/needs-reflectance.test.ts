/** Which spectral indices are other ones for digital numbers than for reflectance. */
import { expect, test } from 'vitest';
import { spectralIndices } from '../../src/steps/spectral-index/catalogue.ts';
import { needsReflectance } from '../../src/steps/spectral-index/needs-reflectance.ts';

test("the kit's indices that add a number to bands", () => {
  const needing = Object.entries(spectralIndices).filter(([, { formula }]) => needsReflectance(formula, {}));
  expect(needing.map(([id]) => id)).toEqual(['EVI', 'EVI2', 'SAVI', 'MSAVI']);
});

test.each<[string, boolean]>([
  ['nir - red', false],
  ['sqrt(nir * red)', false],
  ['(nir - red) / (nir + red + 0.00001)', false],
  ['(nir - red) / (nir + red + L)', true],
  ['sqrt(0.8 - nir) + red', true],
  ['exp(nir * 10)', true],
])('%s: %s', (formula, isNeeded) => {
  expect(needsReflectance(formula, { L: 0.5 })).toBe(isNeeded);
});
