/** The app's key reads the uploads of all users; the app itself keeps them apart. */
import { describe, expect, test } from 'vitest';
import { createOwnUploads } from '../../src/app/catalog/own-uploads.ts';
import { assumedProfile, wireProfile } from '../../src/contract/index.ts';
import { startApp, launchApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';

const launch = { user: { id: 'me', name: 'Me' } };

describe('collections of uploads', () => {
  const own = createOwnUploads(assumedProfile, true);

  test.each([
    ['uploads-me', true],
    ['uploads-you', false],
    ['uploads-', false],
    ['uploads-me2', false],
    ['coastal-optical', true],
  ])('%s: %s', (id, isAllowed) => expect(own.mayUse(launch, id)).toBe(isAllowed));

  test('a launch without a user has none', () => expect(own.mayUse(null, 'uploads-me')).toBe(false));

  test('named inputs are looked through too', () => {
    const one = (collectionId: string) => ({ type: 'platform' as const, items: [{ collectionId, itemId: 'i' }] });
    const inputs = { before: one('uploads-me'), after: one('uploads-you') };
    expect(() => own.requireOwn(launch, { type: 'named', inputs })).toThrow(/holds the uploads of another user/);
    expect(() => own.requireOwn(launch, one('uploads-me'))).not.toThrow();
  });

  test('another pattern of the wire profile counts', () => {
    const other = createOwnUploads(wireProfile({ name: 'other', uploadsCollection: 'u/:userId/files' }), true);
    expect([other.mayUse(launch, 'u/you/files'), other.mayUse(launch, 'uploads-you')]).toEqual([false, true]);
  });

  test('a platform that separates its users itself', () =>
    expect(createOwnUploads(assumedProfile, false).mayUse(launch, 'uploads-you')).toBe(true));
});

test('over the wire: list, search, check and start', async () => {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url);
  const { session } = await launchApp(sandbox, app);
  const foreign = 'uploads-somebody-else';
  const item = { type: 'platform', items: [{ collectionId: foreign, itemId: 'i' }] };
  const refused = [
    session.post('api/items/search', { collections: [foreign] }),
    session.post('api/runs/check', { stepId: 'cog', input: item }),
    session.post('api/runs', { stepId: 'cog', input: item }),
  ];
  for (const answer of await Promise.all(refused)) {
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ code: 'uploads_of_another_user' });
  }
  const twice = { type: 'platform', items: Array(2).fill({ collectionId: 'c', itemId: 'i' }) };
  expect((await session.post('api/runs/check', { stepId: 'cog', input: twice })).status).toBe(400);
});
