// @module-tag all
/** Documentation as a site: every page is in the list, and the site builds without a dead link. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';

const exec = promisify(execFile);
const docs = join(projectRoot, 'docs');
const site = join(projectRoot, 'lab/site');
/** Pages that another page lists: steps and decisions. */
const isListedElsewhere = (page: string) =>
  page === 'README.md' ||
  (page.startsWith('decisions/') && page !== 'decisions/README.md') ||
  /^reference\/(?!README|commands|errors|exports|step-api)/.test(page);

const pages = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md'));

test('docs/README.md lists every page once', async () => {
  const list = await readFile(join(docs, 'README.md'), 'utf8');
  const listed = [...list.matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(([, page]) => page!);
  expect(listed.toSorted()).toEqual(pages.filter((page) => !isListedElsewhere(page)).toSorted());
});

test('the site builds: every page, the files that pages link to, and an index for the search', async () => {
  const folder = await testFolder();
  await exec('npm', ['ci', '--prefix', site, '--no-audit', '--no-fund', '--loglevel=error']);
  const vitepress = join(site, 'node_modules/vitepress/bin/vitepress.js');
  await exec(process.execPath, [vitepress, 'build', site, '--outDir', folder]);
  const built = await readdir(folder, { recursive: true });
  for (const page of pages)
    expect(built).toContain(page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'));
  expect(built).toContain('repository/examples/certify.yml');
  expect(built.filter((path) => path.includes('localSearchIndex')).length).toBeGreaterThan(0);
});
