import { expect, test } from 'vitest';
import { colorRelief } from '../../src/steps/index.ts';

test.each([
  '1 #000000',
  '1 #000000, 1 #ffffff',
  '1 #000000 2 #ffffff',
  '1 #00000, 2 #ffffff',
  'low #000000, 2 #ffffff',
])('colours %s are refused in words', (colors) => {
  const { error } = colorRelief.parameters.safeParse({ colors });
  expect(error?.issues[0]?.message).toContain('must be two or more different values with a colour each');
});
