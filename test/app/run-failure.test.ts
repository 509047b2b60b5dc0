/** Which errors end a session for good. The app then erases the tokens of the launch. */
import { expect, test } from 'vitest';
import { isSessionOver } from '../../src/app/runs/run-failure.ts';
import { KitError } from '../../src/contract/index.ts';
import { PlatformError } from '../../src/platform-client/index.ts';

test.each([
  ['token_revoked', 403, true],
  ['token_expired', 403, true],
  ['token_not_found', 404, true],
  ['authentication_failed', 403, false],
  ['permission_denied', 403, false],
  ['operation_not_found', 404, false],
  ['unauthorized', 401, false],
  ['timeout', 503, false],
] as const)('%s (%i): %s', (code, platformStatus, isOver) => {
  expect(isSessionOver(new PlatformError('operation.status', code, 'refused', { platformStatus }))).toBe(isOver);
});

test('an error of the app is none of the platform, whatever its code', () => {
  expect(isSessionOver(new KitError('token_revoked', 'no'))).toBe(false);
  expect(isSessionOver(undefined)).toBe(false);
});
