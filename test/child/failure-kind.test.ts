/** Classification of plain errors as bug, transient or input. */
import { expect, test } from 'vitest';
import { kindOfPlainError } from '../../src/child/failure-kind.ts';

const coded = (message: string, code: string) => Object.assign(new Error(message), { code });

test.each([
  ['a package that is not installed', coded("Cannot find package 'x'", 'ERR_MODULE_NOT_FOUND'), 'bug'],
  ['a library that is not there', coded("Cannot find module 'gdal.node'", 'MODULE_NOT_FOUND'), 'bug'],
  ['a library that does not load', coded('libgdal.so.32: cannot open shared object file', 'ERR_DLOPEN_FAILED'), 'bug'],
  ['a TypeError', new TypeError('x is not a function'), 'bug'],
  ['a thrown text', 'thrown text', 'bug'],
  ['a full disk', coded('no space left on device', 'ENOSPC'), 'transient'],
  ["a reader's error", new Error('TIFFFillTile: read error'), 'input'],
])('%s', (_, error, kind) => {
  expect(kindOfPlainError(error)).toBe(kind);
});
