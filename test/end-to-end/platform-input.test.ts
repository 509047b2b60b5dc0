/** A run takes its input from the platform: found by a search, fetched after approval, processed, delivered. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { fetchedDigest, launchApp, startApp } from '../support/app.ts';
import { startSandbox } from '../support/sandbox.ts';
import { startStepHost } from '../support/step-host.ts';

interface Found {
  readonly items: {
    collectionId: string;
    itemId: string;
    title: string;
    datetime: string;
    sourceType: string;
    previewHref: string;
  }[];
  readonly numberMatched: number;
}

async function start(env: Record<string, string> = {}) {
  const sandbox = await startSandbox({ seed: 'demo' });
  const app = await startApp(sandbox.url, { env });
  const { session, launchId } = await launchApp(sandbox, app);
  const search = async (wanted: object) => (await (await session.post('api/items/search', wanted)).json()) as Found;
  return { sandbox, app, session, launchId, search };
}

test('an item of the catalog is found, fetched after approval, processed and delivered', async () => {
  const { sandbox, session, launchId, search } = await start();
  const { collections } = (await (await session.get('api/collections')).json()) as {
    collections: { id: string; title: string }[];
  };
  expect(collections.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['coastal-optical', 'harbour-radar', 'alpine-elevation']),
  );

  const { items, numberMatched } = await search({
    collections: ['coastal-optical'],
    datetime: '2024-03-01T00:00:00Z/2024-03-31T00:00:00Z',
    limit: 3,
  });
  expect([items.length, numberMatched]).toEqual([3, 8]);
  expect(items.map(({ datetime }) => datetime)).toEqual(
    items
      .map(({ datetime }) => datetime)
      .toSorted()
      .reverse(),
  );
  const [item] = items;
  const { id } = await session.start({
    stepId: 'ndvi',
    input: { type: 'platform', items: [{ collectionId: item!.collectionId, itemId: item!.itemId }] },
  });
  const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
  const run = await session.waitFor(id, 'COMPLETED');
  expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
  expect((await sandbox.control('GET', `launches/${launchId}`)).operations).toHaveLength(1);

  // The very output that the item's own pixels give.
  const { run: process, inputDir } = await startStepHost({ inputDir: `${sandbox.dataDir}/scenes` });
  const { readdir } = await import('node:fs/promises');
  const digests = await Promise.all(
    (await readdir(inputDir)).map(async (name) =>
      createHash('sha256')
        .update(await readFile((await process('ndvi', { type: 'local', path: name })).path))
        .digest('hex'),
    ),
  );
  expect(digests).toContain(run.output?.sha256);
});

test('bands of several items make one scene: one that two of them have is refused before anybody is asked', async () => {
  const { sandbox, session } = await start();
  const input = {
    type: 'platform',
    items: ['coastal-optical-001', 'coastal-optical-002'].map((itemId) => ({
      collectionId: 'coastal-optical',
      itemId,
    })),
  };
  const answer = await session.post('api/runs', { stepId: 'ndvi', input });
  expect([answer.status, await answer.json()]).toEqual([
    400,
    expect.objectContaining({
      details: [
        {
          path: 'bandA',
          message: expect.stringMatching(/2 bands have the name "nir": coastal-optical-001, /) as string,
        },
        { path: 'bandB', message: expect.stringMatching(/2 bands have the name "red"/) as string },
      ],
    }),
  ]);
  expect((await sandbox.control('GET', 'operations')).operations).toEqual([]);
});

test.each([
  [
    'an item that is not there',
    { type: 'platform', items: [{ collectionId: 'coastal-optical', itemId: 'nothing' }] },
    /no item .*nothing/,
  ],
  [
    'a path for an identifier',
    { type: 'platform', items: [{ collectionId: '../../sandbox', itemId: '../keys' }] },
    /no item/,
  ],
  ['no item', { type: 'platform', items: [] }, /at least one item/],
  [
    'a field too many',
    { type: 'platform', items: [{ collectionId: 'a', itemId: 'b', href: 'http://127.0.0.1:1/' }] },
    /href/,
  ],
])('%s is refused before an operation is made', async (_name, input, message) => {
  const { sandbox, session } = await start();
  const answer = await session.post('api/runs', { stepId: 'ndvi', input });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringMatching(message) as string]);
  expect((await sandbox.control('GET', 'operations')).operations).toEqual([]);
});

test('data that is larger than the limit: the run fails, and says what its user can do', async () => {
  const { sandbox, session } = await start({ INPUT_MAX_BYTES: '1000' });
  const { id } = await session.start({
    stepId: 'ndvi',
    input: { type: 'platform', items: [{ collectionId: 'coastal-optical', itemId: 'coastal-optical-001' }] },
  });
  const waiting = await session.waitFor(id, 'AWAITING_APPROVAL');
  await sandbox.control('POST', `operations/${waiting.operationId}/approve`);
  const run = await session.waitFor(id, 'FAILED');
  expect(run.failure).toMatchObject({
    code: 'asset_too_large',
    advice: expect.stringContaining('INPUT_MAX_BYTES') as string,
  });
});

test('a search that the platform refuses says what was wrong; a platform that is away says so', async () => {
  const { sandbox, session } = await start();
  const refused = await session.post('api/items/search', { collections: ['coastal-optical'], datetime: 'yesterday' });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('stac.search') as string]);
  await sandbox.close();
  const away = await session.get('api/collections');
  expect([away.status, await away.text()]).toEqual([
    502,
    expect.stringContaining('the app could not ask the platform') as string,
  ]);
});
