// @module-tag all
/** Words stay whole, and pages are no wider than their window: with long names, at three widths. */
import { describe, expect, test } from 'vitest';
import { visit } from '../support/browser.ts';
import { geoTiff } from '../support/geotiff.ts';
import { needing } from '../support/needs.ts';
import { populated } from '../support/populated.ts';
import { apiKey } from '../support/sandbox.ts';

/** Words of buttons, pills and cells that stand on more than one line. Names and ids may break anywhere. */
const brokenWords = `(() => {
  const broken = [];
  for (const element of document.querySelectorAll('button, .button, .pill, td, th')) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement.closest('code, .name')) continue;
      for (const match of node.textContent.matchAll(/[\\p{L}]+/gu)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
})()`;
const pixelsTooWide = `document.documentElement.scrollWidth - document.documentElement.clientWidth`;
const heightOfFiles = `document.querySelector('#files table').getBoundingClientRect().height`;

describe('pages with long names', needing('chromium'), () => {
  test('no word is broken, nothing is wider than the page, and a list is no longer than its rows need', async () => {
    const { sandbox, app, session } = await populated({ name: 'Geological Survey of the Northern Highlands' });
    const bytes = new Uint8Array(geoTiff({ width: 8, height: 8, value: (x, y) => x + y }));
    for (let i = 0; i < 12; i++) {
      const form = new FormData();
      form.append('file', new Blob([bytes]), `S2A_MSIL2A_20240301T101029_N0510_R022_T33UUP_${'x'.repeat(60)}_${i}.tif`);
      const { status } = await sandbox.request('POST', '/public/file/upload?sourceType=MULTISPECTRAL', {
        body: form,
        headers: { 'x-api-key': apiKey },
      });
      expect(status).toBe(200);
    }
    const problems: string[] = [];
    for (const width of [1440, 720, 380]) {
      const { page } = await visit([sandbox.url, app.url], { viewport: { width, height: 900 }, webgl: false });
      const [name = '', value = ''] = session.cookie.split('=');
      await page.context().addCookies([{ name, value, url: app.url }]);
      for (const address of ['/', '/approvals', '/catalog', '/files', '/inference', '/launches']
        .map((path) => sandbox.url + path)
        .concat(session.home)) {
        await page.goto(address);
        const at = `${new URL(address).pathname} at ${width}`;
        for (const word of await page.evaluate<string[]>(brokenWords)) problems.push(`${at}: ${word}`);
        const over = await page.evaluate<number>(pixelsTooWide);
        if (over > 0) problems.push(`${at}: ${over} px too wide`);
        if (address.endsWith('/files')) {
          const height = await page.evaluate<number>(heightOfFiles);
          if (height > 13 * 330) problems.push(`${at}: a list of 13 files is ${Math.round(height)} px high`);
        }
      }
    }
    expect(problems).toEqual([]);
  });
});
