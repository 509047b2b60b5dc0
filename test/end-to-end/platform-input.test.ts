// @module-tag all
/** A run takes its input from the platform: found by a search, fetched after approval, processed, delivered. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fetchedBytes, fetchedDigest, launchApp, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
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

  // The very pixels that the item's own give; what made the file says its metadata, and differs.
  const fetched = join(await testFolder(), 'fetched.tif');
  await writeFile(fetched, await fetchedBytes(sandbox, run.file?.fileId));
  const { samples } = await readGeoTiff(fetched);
  const { run: process, inputDir } = await startStepHost({ inputDir: `${sandbox.dataDir}/scenes` });
  const made: (typeof samples)[] = [];
  for (const name of await readdir(inputDir))
    made.push((await readGeoTiff((await process('ndvi', { type: 'local', path: name })).path)).samples);
  expect(made).toContainEqual(samples);
});
