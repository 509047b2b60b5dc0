// @module-tag all
/** `npm run drift` as people use it, and the records that the sandbox is held to. */
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { startSandbox, type RunningSandbox } from '../../src/testing/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { strangePlatform } from '../support/strange-platform.ts';

/** Drift looks at every group of calls. */
const permissions = ['external_app', 'files_admin', 'files_upload', 'inference'] as const;

const run = promisify(execFile);
let platform: RunningSandbox;
let folder: string;

beforeAll(async () => {
  platform = await startSandbox({ permissions, seed: 'demo' });
  cleanUpLater(() => platform.close());
  folder = await testFolder();
}, 900_000);

/** Exit status and all that it said. */
async function drift(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const options = {
    cwd: projectRoot,
    env: { ...process.env, INIT_CWD: folder, PLATFORM_API_KEY: platform.apiKey, PLATFORM_TOKEN: '', ...env },
  };
  try {
    const { stdout, stderr } = await run(process.execPath, ['bin/marketplace-app-kit.mjs', 'drift', ...args], options);
    return { status: 0, text: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, text: stdout + stderr };
  }
}

test(
  'a platform like the sandbox: the same, recorded, and the same again from the record',
  { timeout: 900_000 },
  async () => {
    const first = await drift(['--platform', `${platform.url}/`, '--record', 'record.json']);
    expect(first.text).toContain('same           error-body');
    expect(first).toMatchObject({ status: 0 });
    const again = await drift(['--against', 'record.json']);
    expect(again.text).toMatch(/same: record\.json, level read/);
    expect(again.status).toBe(0);
    expect(first.text + (await readFile(join(folder, 'record.json'), 'utf8'))).not.toContain(platform.apiKey);
  },
);

test(
  'one that differs: told with the place, and fine once it is expected; expected in vain fails',
  { timeout: 900_000 },
  async () => {
    const route = { method: 'GET', path: /^\/public\/external-app\/user\/[^/]+\/detail$/ };
    const strange = await strangePlatform(platform.url, [
      { route, change: { kind: 'rename', on: 'success', field: 'id' } },
    ]);
    cleanUpLater(() => strange.close());
    const { token } = await platform.launch('http://127.0.0.1:9/launch');
    const at = ['--platform', strange.url, '--level', 'launch'];
    const env = { PLATFORM_TOKEN: token };
    const told = await drift([...at, '--json', 'report.json'], env);
    expect(told.status).toBe(1);
    expect(told.text).toContain('BREAKS THE APP  user-detail/of the launch');
    expect(told.text).toContain('src/contract/calls/user-detail.ts (userDetail.response.id');
    expect(told.text).toContain('one operation named "drift"');
    expect(told.text).not.toContain(token);
    const differences = (
      JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as {
        differences: { exchange: string; fact: string }[];
      }
    ).differences;
    const known = differences.map(({ exchange, fact }) => ({ exchange, fact }));
    await writeFile(join(folder, 'known.json'), JSON.stringify(known));
    expect((await drift([...at, '--expect', 'known.json'], env)).status).toBe(0);
    await writeFile(
      join(folder, 'known.json'),
      JSON.stringify([...known, { exchange: 'catalog/root', fact: 'status' }]),
    );
    const gone = await drift([...at, '--expect', 'known.json'], env);
    expect(gone).toMatchObject({ status: 1 });
    expect(gone.text).toContain('EXPECTED, AND NOT SO  catalog/root status');
  },
);

test.each([
  [[], 'give one of --platform URL and --against FILE'],
  [['--platform', 'nowhere'], 'must be an http or https address'],
  [['--platform', 'http://127.0.0.1:9', '--level', 'all'], '--level all must be read, launch, write'],
  [['--platform', 'http://127.0.0.1:9'], 'did not answer GET as HTTP'],
  [['--against', 'none.json'], 'none.json cannot be read (ENOENT)'],
  [['--against', join(projectRoot, 'package.json')], 'package.json must be a file that --record wrote'],
  [
    ['--against', join(projectRoot, 'package.json'), '--json', 'no-such-folder/x.json'],
    'x.json cannot be written (ENOENT)',
  ],
])('%j: says what is wrong', { timeout: 900_000 }, async (args, message) => {
  const { status, text } = await drift(args);
  expect(text).toContain(message);
  expect(status).toBe(1);
});

test('no key: says which setting holds it', { timeout: 900_000 }, async () => {
  const { status, text } = await drift(['--platform', 'http://127.0.0.1:9'], { PLATFORM_API_KEY: '' });
  expect([status, text]).toEqual([
    1,
    expect.stringContaining('PLATFORM_API_KEY (or PLATFORM_API_KEY_FILE) is required'),
  ]);
});

test('the sandbox is as the records have the real platform', { timeout: 900_000 }, async () => {
  const records = join(projectRoot, 'test/drift/records');
  const names = (await readdir(records)).filter((name) => name.endsWith('.json') && !name.endsWith('.expect.json'));
  expect(names).toContain('sandbox-0.2.0.json');
  for (const name of names) {
    const known = join(records, name.replace(/\.json$/, '.expect.json'));
    const hasKnown = (await readdir(records)).includes(name.replace(/\.json$/, '.expect.json'));
    const { status, text } = await drift(['--against', join(records, name), ...(hasKnown ? ['--expect', known] : [])]);
    expect(status, text).toBe(0);
  }
});

test('a refused key comes first, and so does a refused token', { timeout: 900_000 }, async () => {
  const wrongKey = await drift(['--platform', platform.url], { PLATFORM_API_KEY: 'another-key' });
  expect(wrongKey.status).toBe(1);
  expect(wrongKey.text).toMatch(/^the platform refuses the API key for catalog\/root \(status 40[13]\)/);
  const wrongToken = await drift(['--platform', platform.url, '--level', 'launch'], { PLATFORM_TOKEN: 'no-token' });
  expect(wrongToken.text).toMatch(/\nthe platform refuses the identity token \(status 40[134]\)/);
});
