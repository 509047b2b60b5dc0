/** Colours of classes: as their labels say, each its own. */
import { expect, test } from 'vitest';
import { classesOfLabels, isDrawn, legendName } from '../../src/raster/class-table.ts';

/** The strongest of red, green and blue. */
const strongest = ([red, green, blue]: readonly [number, number, number]) =>
  blue > red && blue > green ? 'blue' : green > red ? 'green' : 'red';

test('water is blue, land is brown, and vegetation is green', () => {
  const colors = (labels: string[]) => classesOfLabels(labels, undefined).map(({ color }) => strongest(color));
  expect(colors(['land', 'water'])).toEqual(['red', 'blue']);
  expect(colors(['none', 'sparse', 'dense']).slice(1)).toEqual(['green', 'green']);
  expect(colors(['Forest', 'Open sea', 'Bare soil'])).toEqual(['green', 'blue', 'red']);
});

test('no two classes have one colour', () => {
  const labels = ['deep water', 'shallow water', 'river', 'low', 'high', 'forest', 'wood'];
  const colors = classesOfLabels(labels, undefined).map(({ color }) => color.join());
  expect(new Set(colors).size).toBe(labels.length);
});

test("a model's own colours count", () => {
  expect(classesOfLabels(['water'], [[1, 2, 3]])).toEqual([{ value: 0, name: 'water', color: [1, 2, 3] }]);
});

test.each(['none', 'None', 'no vegetation', 'background'])('%s is not drawn, and the legend says so', (name) => {
  expect([isDrawn({ name }), legendName(name)]).toEqual([false, `${name} (not drawn)`]);
});

test.each(['northern forest', 'noise', 'nonetheless', ''])('%j is drawn', (name) =>
  expect(isDrawn({ name })).toBe(true),
);
