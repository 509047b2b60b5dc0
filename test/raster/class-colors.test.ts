/** Colours of classes: as their labels say, each its own. */
import { describe, expect, test } from 'vitest';
import { classesOfLabels, legendName } from '../../src/raster/class-table.ts';

type Color = readonly [number, number, number];
/** The strongest of red, green and blue; gray if they are close. */
function tone([red, green, blue]: Color): string {
  if (Math.max(red, green, blue) - Math.min(red, green, blue) < 20) return 'gray';
  if (blue > red && blue > green) return 'blue';
  return green > red ? 'green' : red - blue > 60 && green > 100 ? 'brown' : 'red';
}
const tones = (...labels: string[]) => classesOfLabels(labels, undefined).map(({ color }) => tone(color));

test('water is blue, land is brown, and vegetation is green', () => {
  expect(tones('land', 'water')).toEqual(['brown', 'blue']);
  expect(tones('none', 'sparse', 'dense')).toEqual(['gray', 'green', 'green']);
  expect(tones('Forest', 'Open sea', 'Bare soil')).toEqual(['green', 'blue', 'brown']);
  expect(tones('broadleaf forest', 'built-up')).toEqual(['green', 'red']);
  expect(tones('cloud', 'cloud shadow')).toEqual(['gray', 'gray']);
});

test.each(['capacity', 'non-vegetation', 'not burned', 'no water', 'island'])(
  '%s has no colour of a word within it',
  (label) => {
    const others = classesOfLabels(['water', 'vegetation', 'burned', 'city', 'land', label], undefined);
    expect(others.slice(0, 5).map(({ color }) => tone(color))).toEqual(['blue', 'green', 'red', 'red', 'brown']);
  },
);

test('no two classes have colours that cannot be told apart', () => {
  for (const labels of [
    ['other', 'water'],
    ['deep water', 'shallow water', 'river', 'low', 'high', 'forest', 'wood'],
    ['a', 'b', 'c', 'd', 'e', 'f'],
  ]) {
    const colors = classesOfLabels(labels, undefined).map(({ color }) => color);
    for (const [i, one] of colors.entries())
      for (const other of colors.slice(i + 1)) {
        const difference = one.reduce((sum, channel, k) => sum + Math.abs(channel - other[k]!), 0);
        expect(difference, `${labels.join()}: ${one.join()} and ${other.join()}`).toBeGreaterThanOrEqual(100);
      }
  }
});

describe('a class of a model', () => {
  test('has the colour that the model gives, and is drawn', () => {
    expect(classesOfLabels(['none'], [[1, 2, 3]])).toEqual([{ value: 0, name: 'none', color: [1, 2, 3] }]);
  });
  test.each(['none', 'None', 'background'])('%s is not drawn, and the legend says so', (name) => {
    const [found] = classesOfLabels([name], undefined);
    expect([found!.isHidden, legendName(found!)]).toEqual([true, `${name} (not drawn)`]);
  });
  test.each(['no damage', 'northern forest', 'noise'])('%s is drawn', (name) => {
    const [found] = classesOfLabels([name], undefined);
    expect([found!.isHidden ?? false, legendName(found!)]).toEqual([false, name]);
  });
});
