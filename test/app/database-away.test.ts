/** Classification of PostgreSQL errors: of the query, or of the database. */
import { expect, test } from 'vitest';
import { asDatabaseError, DatabaseAwayError } from '../../src/app/database-away.ts';

const withCode = (code: string) => Object.assign(new Error(code), { code });

test.each([
  ['28P01', 'a wrong password'],
  ['28000', 'a role that may not log in'],
  ['3D000', 'a missing database'],
  ['42501', 'a missing permission'],
  ['53100', 'a full disk'],
  ['57P01', 'a shutdown'],
])('%s, %s: the app waits for the database', (code) => {
  expect(asDatabaseError(withCode(code))).toBeInstanceOf(DatabaseAwayError);
});

test.each([
  ['42601', 'a syntax error'],
  ['42P01', 'a missing table'],
  ['23505', 'a duplicate key'],
  ['22P02', 'invalid data'],
])('%s, %s: an error of the query', (code) => {
  const error = withCode(code);
  expect(asDatabaseError(error)).toBe(error);
});
