import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { openSession, startApp } from '../support/app.ts';
import { otherProfile, startOtherPlatform } from '../support/other-wire.ts';
import { apiKey } from '../support/sandbox.ts';

test("the whole flow on another platform's wire, with nothing changed but the profile", async () => {
  const platform = await startOtherPlatform(apiKey);
  const app = await startApp(platform.url, { profile: otherProfile, env: { UPLOAD_PART_BYTES: '5000' } });
  const session = await openSession(`${app.url}/launch?session=${platform.token}`);
  const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 128 } });
  await session.waitFor(id, 'AWAITING_APPROVAL');
  platform.verdict = 'granted';
  await session.waitFor(id, 'PROCESSING', 'UPLOADING');
  platform.endSession();
  const run = await session.waitFor(id, 'COMPLETED');
  const file = platform.files.get(run.file?.fileId ?? '');
  expect(
    createHash('sha256')
      .update(file ?? '')
      .digest('hex'),
  ).toBe(run.output?.sha256);
  expect(platform.files.size).toBe(1);
  expect(platform.calls).toEqual(
    expect.arrayContaining([
      'GET whoami',
      'POST jobs',
      'GET jobs',
      'POST prolong',
      'POST uploads',
      'PUT uploads/U/parts/1',
      'PUT uploads/U/parts/2',
      'POST uploads/U/finish',
    ]),
  );
});
