/** Tag of tests that `npm run test:all` runs and `npm test` leaves out. */
export const onlyInAll = 'all';

/** False for `npm test` (`scripts/test.mjs` sets `TEST_ALL=no`). */
export const isAll = process.env['TEST_ALL'] !== 'no';

/** True if only the tests run that `npm test` leaves out (`.ci/run`). */
export const isRest = process.env['TEST_ALL'] === 'rest';
