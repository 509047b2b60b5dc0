/** A sandbox on a machine without GDAL: the whole flow works, and what needs GDAL says so. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gdalProblem, noChildren } from '../../src/child/index.ts';
import { projectRoot } from '../support/folders.ts';
import {
  apiKey,
  openUpload,
  sendChunk,
  sendComplete,
  someBytes,
  startSandbox,
  type StartOptions,
} from '../support/sandbox.ts';

const reason = 'GDAL is not installed here';
const start = (options: StartOptions = {}) => startSandbox({ confinement: noChildren(reason), ...options });
const key = { 'x-api-key': apiKey };

test('this machine has GDAL', () => expect(gdalProblem()).toBe(null));

test.each(['MULTISPECTRAL', 'UNKNOWN'])(
  'a file of %s is completed as it is, and has the bytes that were sent',
  async (sourceType) => {
    const sandbox = await start();
    const upload = await openUpload(sandbox, 'no-raster.tif', await sandbox.launch());
    const bytes = someBytes(70_000);
    await sendChunk(sandbox, upload, 1, bytes);
    const { fileId } = (await sendComplete(sandbox, upload, bytes.length, { sourceType })).body;
    await expect
      .poll(async () => (await sandbox.request('GET', `/public/file/status/${fileId}`, { headers: key })).body.status)
      .toBe('COMPLETED');
    const { text } = await sandbox.request('GET', `/public/file/download/url?fileId=${fileId}`, { headers: key });
    const received = new Uint8Array(await (await fetch(text)).arrayBuffer());
    expect(createHash('sha256').update(received).digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
  },
);

test('the demo catalog is there: a shipped raster can be read, and what only GDAL makes is refused with the reason', async () => {
  const sandbox = await start({ seed: 'demo', env: { SANDBOX_STAC_STRICT: 'false' } });
  const assetsOf = async (collection: string) => {
    const path = `/public/stac/collections/${collection}/items?limit=1`;
    const { body } = await sandbox.request('GET', path, { headers: key });
    return (body as unknown as { features: { assets: Record<string, { href: string }> }[] }).features[0]!.assets;
  };
  const [shipped, made] = [await assetsOf('olinda-coast'), await assetsOf('coastal-optical')];
  const data = await fetch(shipped['data']!.href);
  expect([data.status, (await data.arrayBuffer()).byteLength > 600_000]).toEqual([200, true]);
  for (const href of [made['data']!.href, shipped['rendered_preview']!.href]) {
    const answer = await fetch(href);
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      404,
      `The sandbox cannot make this file: ${reason}`,
    ]);
  }
});

test('the page of files says that they are not inspected, and lists show a picture for each item', async () => {
  const sandbox = await start({ seed: 'demo' });
  expect((await sandbox.request('GET', '/files')).text).toContain(`becomes an item: ${reason}.`);
  for (const name of ['thumbnail', 'preview']) {
    const picture = await fetch(`${sandbox.url}/catalog/olinda-coast/olinda-landsat7/${name}.webp`);
    expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8']);
  }
});

test('a model and an import of a raster are refused with the reason', async () => {
  const sandbox = await start();
  await expect(
    start({
      prepare: async (opened) => {
        await opened.importPath(join(projectRoot, 'src/sandbox/scenes/jacksboro-dem.tif'), {
          onProgress: () => {},
          onRefused: () => {},
        });
      },
    }),
  ).rejects.toThrow(reason);
  const page = await sandbox.request('GET', '/inference');
  expect([page.status, page.text.includes(reason)]).toEqual([200, true]);
});
