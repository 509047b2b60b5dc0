import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';
import { startCommand, startServer } from '../support/processes.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { onlyInAll } from '../support/tags.ts';

const appEnv = { PLATFORM_URL: 'http://127.0.0.1:1', PLATFORM_API_KEY: 'k', APP_SECRET: 'x'.repeat(32) };

async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(() => server.close());
  return (server.address() as AddressInfo).port;
}

test.each(['sandbox', 'app'] as const)(
  'a data folder has one %s: a second one is refused, with the pid of the first; after kill -9 the next may have it',
  { tags: [onlyInAll] },
  async (name) => {
    const folder = await testFolder();
    const [args, env] =
      name === 'sandbox'
        ? [['--port', '0', '--data', folder, '--seed', 'none'], {}]
        : [
            [],
            {
              PLATFORM_URL: 'http://127.0.0.1:9',
              PLATFORM_API_KEY: 'k',
              APP_SECRET: 's'.repeat(32),
              DATA_DIR: folder,
              PORT: '0',
            },
          ];
    const first = await startServer(name, args, env);
    const second = startCommand(name, args, env);
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`belongs to process ${first.child.pid}`);
    await first.kill('SIGKILL');
    await (await startServer(name, args, env)).kill('SIGTERM');
  },
);

test('a port in use is a clear error', async () => {
  const port = await takenPort();
  const sandbox = startCommand('sandbox', ['--port', String(port), '--data', await testFolder()], {
    SANDBOX_API_KEY: 'k',
  });
  expect(await sandbox.exited).toBe(1);
  expect(sandbox.output()).toBe(
    `port ${port} of 127.0.0.1 is in use: stop what uses it, or set --port (0 takes any free port)\n`,
  );
  const app = startCommand('app', [], { ...appEnv, PORT: String(port), DATA_DIR: await testFolder() });
  expect(await app.exited).toBe(1);
  expect(app.output()).toBe(
    `port ${port} of 127.0.0.1 is in use: stop what uses it, or set PORT (0 takes any free port)\n`,
  );
});

test('sandbox: prints its ready line, listens on 127.0.0.1, and ends in order', async () => {
  const server = await startServer('sandbox', ['--port', '0', '--data', await testFolder()], {
    SANDBOX_API_KEY: 'given-key',
  });
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(await (await fetch(`${server.url}/health`)).json()).toEqual({ status: 'ok' });
  server.child.kill('SIGTERM');
  expect(await new Promise((resolve) => server.child.once('exit', resolve))).toBe(0);
  expect(server.output()).not.toContain('given-key');
});

test('sandbox: without a key one is made, shown once, and works', { tags: [onlyInAll] }, async () => {
  const data = await testFolder();
  const first = await startServer('sandbox', ['--port', '0', '--data', data], {});
  const key = /^api key (\S+)$/m.exec(first.output())?.[1];
  expect(key).toMatch(/^[A-Za-z0-9_-]{22,}$/);
  const status = await fetch(`${first.url}/public/file/status/x`, { headers: { 'x-api-key': key! } });
  expect(status.status).toBe(404);
  await first.kill('SIGTERM');
  const second = await startServer('sandbox', ['--port', '0', '--data', data], {});
  expect(second.output()).not.toContain('api key');
  await second.kill('SIGTERM');
});

test.each([
  ['sandbox', ['--prot', '1'], {}, /there is no option --prot\. Did you mean --port\?[^]*usage: npm run sandbox/],
  ['sandbox', ['--port', 'x'], {}, /^--port x must be an integer/],
  ['app', [], {}, /^PLATFORM_URL is required/],
  ['app', [], { ...appEnv, POLL_INTERVAL_MS: '100' }, /^POLL_INTERVAL_MS=100 must be 2000 to 5000/],
])('%s %j with a wrong setting: exit 1 and one clear message', async (name, args, env, message) => {
  const { exited, output } = startCommand(name, args, { DATA_DIR: await testFolder(), ...env });
  expect(await exited).toBe(1);
  expect(output()).toMatch(message);
  expect(output()).not.toMatch(/\n\s+at /);
});

test('every command that the README and the pages beside it show exists', async () => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'docs/running.md'];
  const readme = (await Promise.all(pages.map((page) => readFile(join(projectRoot, page), 'utf8')))).join('\n');
  const { scripts } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const shown = [...readme.matchAll(/npm (?:run )?([a-z][a-z:-]*)/g)]
    .map(([, name]) => name!)
    .filter((name) => !['registry', 'ci', 'install', 'packages'].includes(name));
  expect(shown.length).toBeGreaterThan(20);
  for (const name of shown) expect(Object.keys(scripts), name).toContain(name);
});
