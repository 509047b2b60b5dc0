/** The report says which permissions the app's calls needed, and fails what was used and not declared. */
import { expect, test } from 'vitest';
import { honestReport } from '../../lab/attack/honest-report.ts';
import { junitOf, permissionLines } from '../../src/commands/certify/outputs.ts';
import { contradiction } from '../../src/commands/certify/recheck.ts';
import { exitStatusOf, summarize, type Report } from '../../src/commands/certify/report.ts';
import { startOwnSandbox } from '../../src/commands/own-sandbox.ts';
import { appPermissions } from '../../src/commands/permissions.ts';
import { assumedProfile } from '../../src/contract/index.ts';
import { scratchFolder } from '../../src/files/index.ts';

/** The honest report, as it is if calls of the app needed these permissions. */
function reportWith(permissions: Report['permissions']): Report {
  const honest = honestReport();
  return summarize(honest.scenarios, {
    ...{ app: honest.app, planVersion: honest.planVersion, limits: honest.limits, expected: [], permissions },
    startedAt: new Date(honest.startedAt),
    finishedAt: new Date(honest.finishedAt),
  });
}

test('used and declared: passed; declared and never used: a warning; used and not declared: failed', () => {
  const well = reportWith({ granted: ['external_app'], used: ['external_app'], denied: [] });
  expect([well.result, exitStatusOf(well)]).toEqual(['PASSED', 0]);
  expect(permissionLines(well)).toEqual(["permissions of the app's key: external_app; used: external_app"]);
  const generous = reportWith({ granted: ['external_app', 'inference'], used: ['external_app'], denied: [] });
  expect([generous.result, permissionLines(generous)[0]]).toEqual([
    'PASSED',
    expect.stringMatching(/^warning: .* inference and never used it/),
  ]);
  const greedy = reportWith({ granted: ['external_app'], used: ['external_app'], denied: ['files_admin'] });
  expect([greedy.result, greedy.level, exitStatusOf(greedy)]).toEqual(['FAILED', null, 1]);
  expect(permissionLines(greedy)[0]).toMatch(/^FAILED: .* files_admin/);
  expect(junitOf(greedy)).toMatch(/testsuite name="permissions"[^>]*failures="1"/);
});

test('a report whose head hides a permission that was denied contradicts itself', () => {
  const greedy = reportWith({ granted: ['external_app'], used: [], denied: ['files_admin'] });
  expect(contradiction(greedy)).toBeNull();
  expect(contradiction({ ...greedy, result: 'PASSED', level: 'exemplary' })).toMatch(/^its result is not what/);
});

test('a sandbox of the certifier notes what calls with the key needed', async () => {
  const folder = scratchFolder('test');
  const own = await startOwnSandbox({ folder: folder.path, profile: assumedProfile, seed: 'none', permissions: ['external_app'] }); // oxfmt-ignore
  try {
    const ask = (path: string) => fetch(`${own.url}${path}`, { headers: { 'x-api-key': own.apiKey } });
    await ask('/public/external-app/user/none/detail');
    expect((await ask('/public/file/status/none')).status).toBe(403);
    expect(own.platform.permissionsOf(own.apiKey)).toEqual({
      granted: ['external_app'],
      used: ['external_app'],
      denied: ['files_admin'],
    });
  } finally {
    await own.close();
    await folder.remove();
  }
});

test('the key of an app has external_app, or the permissions that are given', () => {
  expect(appPermissions(undefined, '')).toEqual(['external_app']);
  expect(appPermissions('external_app,inference', '')).toEqual(['external_app', 'inference']);
  expect(() => appPermissions('all', 'usage: x')).toThrow(/--permissions=all must be one or more of/);
});
