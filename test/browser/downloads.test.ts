// @module-tag all
/** Every download of the sandbox's pages gives the bytes, and a model runs on a scene of the catalog. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Locator, Page } from 'playwright-core';
import { visit } from '../support/browser.ts';
import { key, processed } from '../support/files.ts';
import { projectRoot } from '../support/folders.ts';
import { needing } from '../support/needs.ts';
import { startSandbox } from '../support/sandbox.ts';

async function bytesOf(page: Page, button: Locator): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  return readFile(await download.path());
}

test('of a file, and of what a model made of it', { timeout: 900_000, ...needing('chromium') }, async () => {
  const sandbox = await startSandbox();
  const scene = await readFile(`${projectRoot}/src/sandbox/scenes/olinda-landsat7.tif`);
  const { fileId, status } = await processed(sandbox, scene, 'scene.tif', 'MULTISPECTRAL');
  expect(status).toBe('COMPLETED');
  const { page, complaints } = await visit([sandbox.url], { webgl: false });
  await page.goto(`${sandbox.url}/files`);
  expect(await bytesOf(page, page.getByRole('button', { name: 'Download scene.tif' }))).toEqual(scene);

  const form = new URLSearchParams({ modelId: 'water', fileId });
  const { body } = await sandbox.request('POST', '/public/inference/run', {
    body: form.toString(),
    headers: { ...key, 'content-type': 'application/x-www-form-urlencoded' },
  });
  const state = async () =>
    (await sandbox.request('GET', `/public/inference/status?inferenceId=${body.id}`, { headers: key })).body.status;
  while (!['DONE', 'FAILED'].includes(await state())) await sleep(100);
  const made = await sandbox.request('GET', `/public/inference/download?inferenceJobId=${body.id}`, { headers: key });
  expect(made.status).toBe(200);
  for (const path of ['/inference', `/inference/${body.id}`]) {
    await page.goto(sandbox.url + path);
    const bytes = await bytesOf(page, page.getByRole('link', { name: /^Download/ }).first());
    expect(bytes.length, path).toBeGreaterThan(1_000);
    expect(bytes.toString('utf8'), path).toBe(made.text);
  }
  expect(complaints).toEqual([]);
});

test(
  'a model runs on a scene of the catalog, which becomes a file',
  { timeout: 900_000, ...needing('chromium') },
  async () => {
    const sandbox = await startSandbox({ seed: 'demo' });
    const { page, complaints } = await visit([sandbox.url], { webgl: false });
    await page.goto(`${sandbox.url}/inference`);
    // The elevation has one band, and the model needs four.
    expect(await page.locator('select[name="fileId"] option:disabled').allTextContents()).toEqual([
      expect.stringContaining('HEIGHTMAP') as string,
    ]);
    await page.getByLabel('Model').selectOption({ label: 'Water 1.1.0' });
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('link', { name: 'On the map' }).waitFor({ timeout: 60_000 });
    await page.getByRole('link', { name: 'On the map' }).click();
    await page.getByRole('heading', { name: /^water on Olinda/ }).waitFor({ timeout: 20_000 });
    await page.goto(`${sandbox.url}/files`);
    await page
      .getByRole('link', { name: /^Olinda/ })
      .first()
      .waitFor();
    expect(complaints).toEqual([]);
  },
);
