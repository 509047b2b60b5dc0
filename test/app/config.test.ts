import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readAppConfig } from '../../src/app/config.ts';
import { readSandboxConfig } from '../../src/sandbox/config.ts';
import { testFolder } from '../support/folders.ts';

const good = { PLATFORM_URL: 'http://127.0.0.1:4010/', PLATFORM_API_KEY: 'the-key', APP_SECRET: 's'.repeat(32) };
const read = (env: Record<string, string | undefined>) => readAppConfig(env, () => {});

test('defaults', () => {
  expect(read(good)).toMatchObject({
    host: '127.0.0.1',
    port: 3000,
    platformUrl: 'http://127.0.0.1:4010',
    pollIntervalMs: 3000,
    uploadPartBytes: 16 * 2 ** 20,
    trustProxy: false,
    separateUploads: true,
  });
});

describe('a bad value stops the start, and the message names variable, value and rule', () => {
  test.each([
    [{ PORT: '70000' }, /PORT=70000 must be an integer from 0 to 65535/],
    [{ PORT: 'http' }, /PORT=http/],
    [{ POLL_INTERVAL_MS: '500' }, /POLL_INTERVAL_MS=500 must be 2000 to 5000/],
    [{ POLL_INTERVAL_MS: '5001' }, /POLL_INTERVAL_MS=5001 must be 2000 to 5000/],
    [{ PLATFORM_URL: undefined }, /PLATFORM_URL is required/],
    [{ PLATFORM_URL: 'platform' }, /PLATFORM_URL=platform must be an http or https address/],
    [{ PLATFORM_URL: 'http://user@platform' }, /PLATFORM_URL=/],
    [{ PLATFORM_API_KEY: undefined }, /PLATFORM_API_KEY .*is required/],
    [
      { PLATFORM_URL: undefined, PLATFORM_API_KEY: undefined },
      /PLATFORM_URL is required[^]*PLATFORM_API_KEY .*is required/,
    ],
    [
      { PLATFORM_API_KEY: undefined, PLATFORM_API_KEY_FILE: '/nope' },
      /PLATFORM_API_KEY_FILE=\/nope cannot be read: ENOENT/,
    ],
    [{ APP_SECRET: 'short' }, /APP_SECRET must be at least 32 characters/],
    [{ UPLOAD_PART_BYTES: '0' }, /UPLOAD_PART_BYTES=0/],
    [{ UPLOAD_PART_BYTES: String(513 * 2 ** 20) }, /UPLOAD_PART_BYTES=/],
    [{ LOG_LEVEL: 'loud' }, /LOG_LEVEL=loud must be a pino level/],
    [{ TRUST_PROXY: 'yes' }, /TRUST_PROXY=yes must be true or false/],
  ])('%j', (change, message) => {
    expect(() => read({ ...good, ...change })).toThrow(message);
    try {
      read({ ...good, ...change });
    } catch (error) {
      expect(String(error)).not.toContain('the-key');
    }
  });
});

test('secrets come from files too, and print as [redacted]', async () => {
  const file = join(await testFolder(), 'key');
  await writeFile(file, 'from-a-file\n');
  const config = read({ ...good, PLATFORM_API_KEY: undefined, PLATFORM_API_KEY_FILE: file });
  expect(config.platformApiKey.reveal()).toBe('from-a-file');
  expect(`${inspect(config)}${JSON.stringify(config)}${config.secrets.toString()}`).not.toMatch(/from-a-file|ssss/);
});

test('without APP_SECRET one is made, kept for the next start, readable by nobody else, and announced', async () => {
  const folder = await testFolder();
  const warnings: string[] = [];
  const env = { ...good, APP_SECRET: undefined, DATA_DIR: folder };
  const [first, second] = [
    readAppConfig(env, (text) => warnings.push(text)),
    readAppConfig(env, (text) => warnings.push(text)),
  ];
  expect(first.secrets.map((one) => one.reveal())).toEqual(second.secrets.map((one) => one.reveal()));
  expect((await readFile(join(folder, 'app-secret'), 'utf8')).length).toBeGreaterThanOrEqual(32);
  expect((await stat(join(folder, 'app-secret'))).mode & 0o777).toBe(0o600);
  expect(warnings).toEqual([expect.stringContaining('APP_SECRET')]);
});

test('an app-secret that a full disk has left empty is no secret', async () => {
  const folder = await testFolder();
  const env = { ...good, APP_SECRET: undefined, DATA_DIR: folder };
  for (const left of ['', 'short']) {
    await writeFile(join(folder, 'app-secret'), left);
    expect(() => read(env)).toThrow(/app-secret holds less than 32 characters/);
  }
});

test.each(['', ' ', 'two\nlines', 'größe', 'a key'])(
  'the API key %j of a file is refused, and not shown',
  async (key) => {
    const file = join(await testFolder(), 'key');
    await writeFile(file, key);
    const env = { ...good, PLATFORM_API_KEY: undefined, PLATFORM_API_KEY_FILE: file };
    expect(() => read(env)).toThrow(/^PLATFORM_API_KEY (\(or PLATFORM_API_KEY_FILE\) is required|must be one word)/);
    expect(() => read(env)).not.toThrow(/größe|lines/);
  },
);

test('sandbox: a bad value stops the start', () => {
  expect(() => readSandboxConfig({}, { port: '99999' })).toThrow(/--port 99999/);
  expect(() => readSandboxConfig({ PUBLIC_URL: 'x' }, {})).toThrow(/PUBLIC_URL=x must be/);
  expect(() => readSandboxConfig({ SANDBOX_API_KEY: 'a b' }, {})).toThrow(/SANDBOX_API_KEY must be printable/);
  expect(() => readSandboxConfig({ SANDBOX_CLOCK: '2026-01-01' }, {})).toThrow(
    /SANDBOX_CLOCK=2026-01-01 must be a time/,
  );
  expect(() => readSandboxConfig({ SANDBOX_SEED: 'full' }, {})).toThrow('SANDBOX_SEED=full must be one of demo, none');
  expect(readSandboxConfig({ SANDBOX_SEED: 'none' }, {}).seed).toBe('none');
  expect(readSandboxConfig({ SANDBOX_SEED: 'none' }, { seed: 'demo' }).seed).toBe('demo');
  expect(readSandboxConfig({}, {})).toMatchObject({ host: '127.0.0.1', port: 4010 });
});
