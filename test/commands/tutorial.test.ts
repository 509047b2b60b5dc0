// @module-tag all
/** Plays the tutorials from their text: runs the commands, writes the files, and compares the output. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { freePort } from '../../src/commands/free-port.ts';
import { projectRoot } from '../support/folders.ts';
import { mutant } from '../support/mutant.ts';

/** One code block, with the text before it. */
interface Block {
  readonly before: string;
  readonly info: string;
  readonly code: string;
}

function blocksOf(page: string): Block[] {
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

const environment = { PATH: process.env['PATH'], HOME: process.env['HOME'] };

function runs(line: string, folder: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['-ec', line],
      {
        cwd: folder,
        env: environment,
        maxBuffer: 64 * 1024 * 1024,
      },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : 1, output: `${stdout}${stderr}` }),
    );
  });
}

/** The ports of the page may be in use. */
async function withFreePorts(page: string): Promise<string> {
  const [platform, app] = [await freePort(), await freePort()];
  return page
    .replaceAll(/(?<=127\.0\.0\.1:)4010/g, String(platform))
    .replaceAll(/(?<=127\.0\.0\.1:|PORT=)5000/g, String(app))
    .replaceAll('npm run certify -- --launch-url', `npm run certify -- --port ${platform} --launch-url`);
}

test.each<[page: string, leastCommands: number, files: number, leastLines: number]>([
  ['tutorial.md', 6, 2, 11],
  ['tutorial-certify.md', 7, 0, 9],
])('docs/%s, start to end', { timeout: 1_800_000 }, async (page, leastCommands, wantedFiles, leastLines) => {
  const folder = await mutant([], ['bin', 'examples', 'test', 'package-lock.json', 'tsconfig.json']);
  let [output, commands, files, lines] = ['', 0, 0, 0];
  let server: ChildProcess | null = null;
  const stop = async () => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGINT');
    await ended;
  };
  cleanUpLater(stop);
  const text = await withFreePorts(await readFile(join(projectRoot, 'docs', page), 'utf8'));
  for (const { before, info, code } of blocksOf(text)) {
    if (info === 'sh' || info === 'sh fails') {
      output = '';
      for (const line of code.trim().split('\n')) {
        const ran = await runs(line, folder);
        output += ran.output;
        commands += 1;
        expect(ran.code, `${line}\n${ran.output}`).toBe(info === 'sh' ? 0 : 1);
      }
    } else if (info === 'sh background') {
      await stop();
      const command = code.trim().replace(/ (?=python3 )/, ' exec ');
      server = spawn('bash', ['-c', command], { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(server, 'exit').then(() => Promise.reject(new Error(`${command} ended`)));
      ended.catch(() => {});
      await Promise.race([once(server.stdout!, 'data'), ended]);
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
  expect(commands).toBeGreaterThanOrEqual(leastCommands);
  expect(files).toBe(wantedFiles);
  expect(lines).toBeGreaterThanOrEqual(leastLines);
});
