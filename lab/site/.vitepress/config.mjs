/** Shows `docs/` as a site: the sidebar is the list of pages in docs/README.md. `DOCS_BASE` is the path of the site, as `/1.0/` for one of several versions. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const docs = join(root, 'docs');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const base = env.DOCS_BASE ?? '/';
const description = 'Build, test and certify an app for the geospatial marketplace, on your machine.';
/** Files that pages link to and that are no pages, by their path in the site. */
const files = new Map();

/** Front pages of folders. GitHub shows a README.md, a site an index.md. */
const toIndex = (path) => path.replace(/(^|\/)README\.md/, '$1index.md');

/** `## Group`, then `- [Title](page.md): text`. */
function sidebar() {
  const groups = [];
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    const [, group] = /^## (.+)$/.exec(line) ?? [];
    const [, text, link] = /^- \[(.+?)\]\((.+?)\)/.exec(line) ?? [];
    if (group) groups.push({ text: group, items: [] });
    if (text) groups.at(-1).items.push({ text, link: `/${toIndex(link)}` });
  }
  return groups;
}

/** The pages for assistants, as https://llmstxt.org has it: groups, titles, and the text of each page beside its address. */
function llmsText(outDir) {
  const lines = [
    '# Marketplace App Kit',
    '',
    `> ${description}`,
    '',
    readFileSync(join(root, 'AGENTS.md'), 'utf8').split('\n\n')[1],
    '',
  ];
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    if (/^## /.test(line)) lines.push(line, '');
    const [, title, path, rest = ''] = /^- \[(.+?)\]\((.+?\.md)\)(.*)$/.exec(line) ?? [];
    if (title === undefined) continue;
    lines.push(`- [${title}](${base}${path})${rest}`);
    mkdirSync(dirname(join(outDir, path)), { recursive: true });
    cpSync(join(docs, path), join(outDir, path));
  }
  return `${lines.join('\n')}\n`;
}

/** Turns a link of `page` into one of the site. Links that leave the folder lead to a copy of the file. */
function inSite(href, page) {
  if (/^([a-z]+:|#|\/)/i.test(href)) return href;
  const [, path, anchor = ''] = /^([^#]*)(#.*)?$/.exec(href);
  const target = resolve(dirname(page), path);
  const inDocs = relative(docs, target);
  if (!inDocs.startsWith('..') && target.endsWith('.md')) return toIndex(path) + anchor;
  if (/\.(png|svg|jpe?g)$/.test(target)) return href;
  const name = inDocs.startsWith('..') ? join('repository', relative(root, target)) : inDocs;
  files.set(name, target);
  return `${base}${name}`;
}

export default defineConfig({
  srcDir: '../../docs',
  outDir: '../../data/site',
  cacheDir: '../../data/site-cache',
  base,
  title: 'Marketplace App Kit',
  description,
  lang: 'en',
  head: [['style', {}, '.vp-doc td img { min-width: 96px }']],
  rewrites: toIndex,
  ignoreDeadLinks: [/^https?:\/\/(localhost|127\.0\.0\.1)/],
  markdown: {
    // Makes anchors as GitHub does, so that a link leads to the same place on both.
    anchor: {
      slugify: (title) =>
        title
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}_ -]/gu, '')
          .replaceAll(' ', '-'),
    },
    config(markdown) {
      const { fence } = markdown.renderer.rules;
      markdown.renderer.rules.fence = (tokens, i, ...rest) =>
        tokens[i].info.trim() === 'mermaid'
          ? `<pre class="mermaid" v-pre>${markdown.utils.escapeHtml(tokens[i].content)}</pre>`
          : fence(tokens, i, ...rest);
      markdown.core.ruler.push('links', ({ tokens, env: { path } }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.type === 'link_open' ? token.attrGet('href') : null;
          if (href === null) continue;
          const link = inSite(href, path);
          token.attrSet('href', link);
          if (files.has(link.slice(base.length))) token.attrSet('target', '_blank');
        }
      });
    },
  },
  themeConfig: {
    nav: [
      { text: 'Package exports', link: '/api/index.html', target: '_self' },
      { text: `Version ${version}`, link: '/upgrading' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  vite: { esbuild: { tsconfigRaw: {} } },
  buildEnd({ outDir }) {
    for (const [name, source] of files) {
      if (!existsSync(source)) throw new Error(`a page links to ${source}, which is not there`);
      mkdirSync(dirname(join(outDir, name)), { recursive: true });
      cpSync(source, join(outDir, name), { recursive: true });
    }
    writeFileSync(join(outDir, 'llms.txt'), llmsText(outDir));
  },
});
