// @module-tag all
/** Documentation as a site: every page is in the list, and the site builds without a dead link and with every export. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { publicExports } from '../../scripts/release/public-surface.ts';
import { projectRoot, testFolder } from '../support/folders.ts';

const exec = promisify(execFile);
const docs = join(projectRoot, 'docs');
const site = join(projectRoot, 'lab/site');
/** Pages that another page lists: steps and decisions. */
const isListedElsewhere = (page: string) =>
  page === 'README.md' ||
  (page.startsWith('decisions/') && page !== 'decisions/README.md') ||
  /^reference\/(?!README|commands|errors)/.test(page);

const pages = (await readdir(docs, { recursive: true })).filter((path) => path.endsWith('.md'));

test('docs/README.md lists every page once', async () => {
  const list = await readFile(join(docs, 'README.md'), 'utf8');
  const listed = [...list.matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(([, page]) => page!);
  expect(listed.toSorted()).toEqual(pages.filter((page) => !isListedElsewhere(page)).toSorted());
});

beforeAll(async () => {
  await exec('npm', ['ci', '--prefix', site, '--no-audit', '--no-fund', '--loglevel=error']);
});

test('the site builds: every page, the files that pages link to, and an index for the search', async () => {
  const folder = await testFolder();
  const vitepress = join(site, 'node_modules/vitepress/bin/vitepress.js');
  await exec(process.execPath, [vitepress, 'build', site, '--outDir', folder]);
  const built = await readdir(folder, { recursive: true });
  for (const page of pages)
    expect(built).toContain(page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'));
  // The browser draws diagrams.
  expect(await readFile(join(folder, 'explanation/run.html'), 'utf8')).toContain('<pre class="mermaid"');
  expect(built).toContain('repository/examples/certify.yml');
  const forAssistants = await readFile(join(folder, 'llms.txt'), 'utf8');
  const linked = [...forAssistants.matchAll(/^- \[.+?\]\(\/(.+?\.md)\)/gm)].map(([, page]) => page!);
  expect(linked.length).toBeGreaterThan(30);
  for (const page of linked)
    expect(await readFile(join(folder, page), 'utf8')).toBe(await readFile(join(docs, page), 'utf8'));
  expect(built.filter((path) => path.includes('localSearchIndex')).length).toBeGreaterThan(0);
});

test('each entry point of the package has a page with every name that it exports', async () => {
  const folder = await testFolder();
  const typedoc = join(site, 'node_modules/typedoc/bin/typedoc');
  await exec(process.execPath, [typedoc, '--options', join(site, 'typedoc.json'), '--out', folder]);
  for (const [entry, exports] of Map.groupBy(publicExports(), (one) => one.entry)) {
    const page = await readFile(join(folder, 'modules', `${entry === '.' ? 'index' : entry.slice(2)}.html`), 'utf8');
    const shown = [...page.matchAll(/href="\.\.\/[a-z]+\/([^"]+)\.html"/g)].map(([, path]) => path!.split('.').at(-1));
    // `z` is zod's.
    for (const { name } of exports) if (name !== 'z') expect(shown, entry).toContain(name);
  }
});
