/** The mechanical rules of the project's English: words that the pages avoid, and sentences that a reader can hold. */
import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { TextlintKernel } from '@textlint/kernel';
import { describe, expect, test } from 'vitest';
import terminology from 'textlint-rule-terminology';
import maxWordCount from 'textlint-rule-en-max-word-count';
import terms from '../support/avoided-words.json' with { type: 'json' };
import { projectRoot } from '../support/folders.ts';

/** Vitest and Node import its default export differently. */
const { default: markdown } = createRequire(import.meta.url)(
  '@textlint/textlint-plugin-markdown',
) as typeof import('@textlint/textlint-plugin-markdown');
/** The rule counts a chain of clauses with semicolons as one sentence, and code as words. */
const maxWords = 25;
const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: projectRoot });
const isGenerated = (page: string) => page.startsWith('docs/reference/') || page === 'docs/performance.md';

async function findings(page: string, text: string): Promise<string[]> {
  const { messages } = await new TextlintKernel().lintText(text, {
    filePath: page,
    ext: '.md',
    plugins: [{ pluginId: 'markdown', plugin: markdown }],
    rules: [
      { ruleId: 'terminology', rule: terminology, options: { defaultTerms: false, terms } },
      ...(isGenerated(page) ? [] : [{ ruleId: 'words', rule: maxWordCount, options: { max: maxWords } }]),
    ],
  });
  return messages.map(({ loc, message }) => `${page}:${loc.start.line} ${message}`);
}

test('pages avoid the words of the list, and sentences have at most 25 words', async () => {
  expect(pages.length).toBeGreaterThan(60);
  const all = await Promise.all(pages.map((page) => findings(page, readFileSync(join(projectRoot, page), 'utf8'))));
  expect(all.flat()).toEqual([]);
});

/** Words of a page, without those of its blocks of code. */
const countWords = (page: string) =>
  readFileSync(join(projectRoot, page), 'utf8')
    .replaceAll(/^ *```[^]*?^ *```$/gm, '')
    .split(/\s+/)
    .filter((one) => /\w/.test(one)).length;

test.each([
  ['all written pages', 28_000, pages.filter((page) => !isGenerated(page))],
  [
    "a newcomer's way",
    4_000,
    [
      'README.md',
      'docs/README.md',
      'docs/tutorial.md',
      'docs/running.md',
      'docs/steps.md',
      'docs/explanation/run.md',
      'docs/go-live.md',
    ],
  ],
])('%s: at most %d words', (_name, most, read) => {
  expect(read.reduce((sum, page) => sum + countWords(page), 0)).toBeLessThanOrEqual(most);
});

describe('finds', () => {
  const [[first, instead] = []] = terms;
  test.each([
    ['a word of the list', `The app does it ${first}.`, `“${first}”, use “${instead}”`],
    ['a long sentence', `${'word '.repeat(maxWords + 1)}.`, 'maximum word count'],
  ])('%s', async (_name, text, says) => {
    expect((await findings('README.md', text)).join()).toContain(says);
  });
});
