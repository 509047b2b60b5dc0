import { expect, test } from 'vitest';
import { RecentMap } from '../../src/app/recent-map.ts';

test('keeps so many: what was asked for or set least lately makes room', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([1, undefined, 3]);
  map.set('a', 4);
  map.set('d', 5);
  expect([map.get('a'), map.get('c'), map.get('d')]).toEqual([4, undefined, 5]);
});
