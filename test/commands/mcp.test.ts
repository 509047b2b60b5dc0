// @module-tag all
/** The tools of an assistant: a scripted one mends a broken app by the verdict alone, and sees neither token nor key. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, test } from 'vitest';
import { tools } from '../../src/commands/mcp/tools.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { needing, python } from '../support/needs.ts';
import { adminKey, apiKey, startSandbox } from '../support/sandbox.ts';

interface Answer {
  readonly isError: boolean;
  readonly text: string;
}

/** A client of the server. Keeps everything that the tools answered. */
async function assistant(sandboxUrl: string, args: readonly string[] = []) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(projectRoot, 'bin/marketplace-app-kit.mjs'), 'mcp', '--sandbox', sandboxUrl, ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', SANDBOX_ADMIN_KEY: adminKey },
    stderr: 'inherit',
  });
  const client = new Client({ name: 'scripted', version: '1.0.0' });
  await client.connect(transport);
  cleanUpLater(() => client.close());
  const answers: string[] = [];
  return {
    client,
    answers,
    use: async (name: string, input: Record<string, unknown> = {}): Promise<Answer> => {
      const result = await client.callTool({ name, arguments: input }, undefined, { timeout: 300_000 });
      const [content] = result.content as { text: string }[];
      const text = content?.text ?? '';
      answers.push(text);
      return { isError: result.isError === true, text };
    },
  };
}

interface Violation {
  readonly seen: string;
  readonly expected: string;
}
interface Verdict {
  readonly result: string;
  readonly rules: readonly {
    readonly rule: string;
    readonly result: string;
    readonly violations: readonly Violation[];
  }[];
}

/** Mistakes of an app, each with the mend that its verdict asks for: from the rule, and what it says was expected. */
const mends: Readonly<Record<string, (source: string, violation: Violation) => string>> = {
  'poll-interval': (source, { expected }) => {
    const least = Number(/(\d+) ms/.exec(expected)?.[1]) / 1_000;
    return source.replace(/POLL_SECONDS = [\d.]+/, `POLL_SECONDS = ${least + 0.5}`);
  },
  'chunk-order': (source, { expected }) =>
    source.replace(/part_bytes\), \d+\)/, `part_bytes), ${/chunk (\d+)/.exec(expected)?.[1] ?? '1'})`),
};
const mistakes = (source: string) =>
  source.replace('POLL_SECONDS = 2.5', 'POLL_SECONDS = 0.5').replace('part_bytes), 1)', 'part_bytes), 2)');

describe('a scripted assistant', needing(python), () => {
  test('mends the example in Python by the verdict alone', { timeout: 180_000 }, async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    const path = join(await testFolder(), 'app.py');
    const original = await readFile(join(projectRoot, 'examples/python/app.py'), 'utf8');
    await writeFile(path, mistakes(original));
    expect(mistakes(original)).not.toBe(original);
    const { use, answers } = await assistant(sandbox.url);
    const broken: string[] = [];
    let verdict: Verdict | undefined;
    for (let round = 0; round < 5 && verdict?.result !== 'passed'; round++) {
      const app = spawn('python3', [path], {
        env: { PATH: process.env['PATH'], PLATFORM_URL: sandbox.url, PLATFORM_API_KEY: apiKey, PORT: '0' },
      });
      cleanUpLater(() => void app.kill('SIGKILL'));
      const url = await new Promise<string>((resolve) =>
        app.stdout.on('data', (text: Buffer) => {
          const ready = /app ready (\S+)/.exec(text.toString())?.[1];
          if (ready) resolve(ready);
        }),
      );
      const launched = JSON.parse((await use('launch', { launchUrl: `${url}/launch` })).text) as { launchId: string };
      const { launchId } = launched;
      const operations = async () =>
        JSON.parse((await use('operations', { launchId })).text) as { operationId: string; status: string }[];
      while ((await operations()).length === 0) await sleep(100);
      await sleep(3_000);
      await use('approve', { operationId: (await operations())[0]!.operationId });
      // Until the app has made no call for a while.
      for (let [before, calls] = [-1, 0]; before !== calls; await sleep(4_000)) {
        before = calls;
        calls = (JSON.parse((await use('trace', { launchId })).text) as unknown[]).length;
      }
      app.kill('SIGKILL');
      verdict = JSON.parse((await use('verdict', { launchId })).text) as Verdict;
      const failed = verdict.rules.find(({ result }) => result === 'failed');
      if (!failed) continue;
      broken.push(failed.rule);
      await writeFile(path, mends[failed.rule]!(await readFile(path, 'utf8'), failed.violations[0]!));
    }
    expect(verdict?.result).toBe('passed');
    expect(broken.toSorted()).toEqual(['chunk-order', 'poll-interval']);
    const all = answers.join('\n');
    expect(all.includes(apiKey) || all.includes(adminKey)).toBe(false);
    expect(all).not.toMatch(/[?&]token=(?!\[)/);
  });
});

test('lists its tools with schemas, and answers what is wrong in words', async () => {
  const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
  const { client, use } = await assistant(sandbox.url);
  const listed = (await client.listTools()).tools;
  expect(listed.map(({ name }) => name)).toEqual(Object.keys(tools));
  for (const { description, inputSchema } of listed) {
    expect(description).toMatch(/\.$/);
    expect(inputSchema.type).toBe('object');
  }
  const { token, launchId } = await sandbox.launch();
  await sandbox.app('GET', `/user/${token}/detail`);
  const trace = await use('trace', { launchId });
  expect(trace.text).toContain('user.detail');
  expect(trace.text.includes(token)).toBe(false);
  expect(await use('launch')).toMatchObject({
    isError: true,
    text: expect.stringContaining('launch address') as string,
  });
  expect(await use('launch', { launchUrl: 'http://example.com/launch' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('must be http on this machine') as string,
  });
  expect(await use('launch', { launchUrl: 'http://127.0.0.1:9/launch' })).toMatchObject({
    isError: true,
    text: 'the app does not answer at its launch address: start it first',
  });
  expect(await use('verdict', { launchId: 'none' })).toMatchObject({ isError: true });
  expect(await use('move_clock', { advanceMs: 1, launchID: launchId })).toMatchObject({ isError: true });
  expect(await use('certify', { scenario: 'reject' })).toMatchObject({ isError: true });
  expect(await use('arm_fault', { endpoint: 'user.detail', effect: { status: 503 }, launchId })).toEqual({
    isError: false,
    text: 'armed',
  });
  expect((await sandbox.app('GET', `/user/${token}/detail`)).status).toBe(503);
  expect(await use('move_clock', { advanceMs: 1_000 })).toEqual({ isError: false, text: 'moved' });
});

test(
  'certifies a scenario by the command that it was started with',
  { ...needing(python), timeout: 120_000 },
  async () => {
    const sandbox = await startSandbox({ env: { SANDBOX_ADMIN_KEY: adminKey } });
    const { use } = await assistant(sandbox.url, [
      '--start',
      `python3 '${join(projectRoot, 'examples/python/app.py')}'`,
    ]);
    const { text } = await use('certify', { scenario: 'approve-at-once' });
    expect(JSON.parse(text)).toMatchObject({
      status: 'FINISHED',
      scenarios: [{ id: 'approve-at-once', result: 'PASSED' }],
    });
    expect(text).not.toMatch(/api key/);
  },
);

test.each(['https://sandbox.example', 'http://user:pw@127.0.0.1:4010', 'file:///etc'])(
  'a sandbox at %s is refused',
  async (url) => {
    const child = spawn(process.execPath, [join(projectRoot, 'bin/marketplace-app-kit.mjs'), 'mcp', '--sandbox', url]);
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(1);
    expect(said).toContain('must be an http address of this machine');
    expect(said).not.toContain('pw');
  },
);
