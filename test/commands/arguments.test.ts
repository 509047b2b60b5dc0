/** Ids may begin with a hyphen, and are then no options. */
import { expect, test } from 'vitest';
import { readArguments } from '../../src/commands/arguments.ts';

const config = { allowPositionals: true, options: { run: { type: 'string' }, yes: { type: 'boolean' } } } as const;
const id = '-Ab3_xyzXYZ-0123456789';

test.each([
  [['--run', id], { run: id }, []],
  [['--run', 'abc', id], { run: 'abc' }, [id]],
  [[id, '--yes'], { yes: true }, [id]],
  [['--yes', id], { yes: true }, [id]],
  [['xxrun', id], {}, ['xxrun', id]],
  [['--run', `-${id}`], { run: `-${id}` }, []],
  [['--', '--yes', id], {}, ['--yes', id]],
])('%j', (args, values, positionals) => {
  const given = readArguments('usage', config, args);
  expect({ values: { ...given.values }, positionals: given.positionals }).toEqual({ values, positionals });
});

test.each([['-h'], ['--Yes'], ['--runs'], ['-y'], ['--run=1', '--nothing-of-this']])('%s is refused', (...args) => {
  expect(() => readArguments('usage', config, args)).toThrow(/^(Unknown|there is no) option [^]*\n\nusage$/);
});
