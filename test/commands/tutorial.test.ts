// @module-tag all
/** The tutorial, played from its own text: its commands run, its files are written, and its output appears. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';
import { mutant } from '../support/mutant.ts';

/** One code block, with the text before it. */
interface Block {
  readonly before: string;
  readonly info: string;
  readonly code: string;
}

async function blocks(): Promise<Block[]> {
  const page = await readFile(join(projectRoot, 'docs', 'tutorial.md'), 'utf8');
  const found: Block[] = [];
  let end = 0;
  for (const match of page.matchAll(/^```([^\n]*)\n([^]*?)^```$/gm)) {
    found.push({ before: page.slice(end, match.index), info: match[1] ?? '', code: match[2] ?? '' });
    end = match.index + match[0].length;
  }
  return found;
}

/** Digests, times, numbers and lengths of lines differ from run to run. */
const masked = (text: string) =>
  text
    .replaceAll(/[0-9a-f]{64}/g, '#')
    .replaceAll(/\d[\d.:TZ-]*/g, '#')
    .replaceAll(/\s+/g, ' ')
    .trim();

function runs(line: string, folder: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['-ec', line],
      {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
        maxBuffer: 64 * 1024 * 1024,
      },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : 1, output: `${stdout}${stderr}` }),
    );
  });
}

test('docs/tutorial.md, start to end', { timeout: 1_800_000 }, async () => {
  const folder = await mutant([], ['bin', 'models', 'scenes', 'test', 'package-lock.json', 'tsconfig.json']);
  let [output, commands, files, lines] = ['', 0, 0, 0];
  for (const { before, info, code } of await blocks()) {
    if (info === 'sh' || info === 'sh fails') {
      output = '';
      for (const line of code.trim().split('\n')) {
        const ran = await runs(line, folder);
        output += ran.output;
        commands += 1;
        expect(ran.code, `${line}\n${ran.output}`).toBe(info === 'sh' ? 0 : 1);
      }
    } else if (info === 'text') {
      for (const line of code.trim().split('\n')) {
        lines += 1;
        expect(masked(output)).toContain(masked(line));
      }
    } else if (info === 'ts' || info === 'json') {
      const path = /Replace the content of `([^`]+)`/.exec(before)?.[1];
      expect(path, before).toBeDefined();
      await writeFile(join(folder, path!), code);
      files += 1;
    } else expect(info).toBe('sh server');
  }
  expect(commands).toBeGreaterThanOrEqual(6);
  expect(files).toBe(2);
  expect(lines).toBeGreaterThan(10);
});
