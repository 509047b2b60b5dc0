// @module-tag all
/** `certify --start`: the app under test is started, told where its platform is, and gone at the end. */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { badgeOf } from '../../src/commands/certify/outputs.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { startScriptedServer } from '../support/scripted-server.ts';

const run = promisify(execFile);
const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
const certify = (...args: string[]) => [cli, 'certify', '--patience', '5', '--scenario', 'reject', ...args];

/** An app that writes its settings and its process to files, and answers every request with a page. */
async function idleApp(): Promise<{ readonly folder: string; readonly command: string }> {
  const folder = await testFolder();
  const code = `
    const { writeFileSync } = require('node:fs');
    const { PLATFORM_URL, PLATFORM_API_KEY, PORT } = process.env;
    writeFileSync('settings.json', JSON.stringify({ PLATFORM_URL, PLATFORM_API_KEY, PORT }));
    writeFileSync('pid', String(process.pid));
    require('node:http').createServer((req, res) => res.end('ok')).listen(Number(PORT), '127.0.0.1');`;
  await writeFile(join(folder, 'app.cjs'), code);
  // The shell stays its parent, so the certifier must end both.
  return { folder, command: `cd '${folder}' && '${process.execPath}' app.cjs; true` };
}

const isAlive = (pid: number) => existsSync(`/proc/${pid}`);

test('the app has address, key and port, and is gone afterwards', async () => {
  const { folder, command } = await idleApp();
  const key = 'a-key-that-nobody-guesses';
  const env = { ...process.env, SANDBOX_API_KEY: key };
  const { stdout, stderr } = await run(process.execPath, certify('--start', command), { env }).catch(
    (error: unknown) => error as { stdout: string; stderr: string },
  );
  const settings = JSON.parse(await readFile(join(folder, 'settings.json'), 'utf8')) as Record<string, string>;
  const [, sandbox] = /^sandbox ready (\S+)$/m.exec(stdout) ?? [];
  expect(settings).toEqual({
    PLATFORM_URL: sandbox,
    PLATFORM_API_KEY: key,
    PORT: expect.stringMatching(/^\d+$/) as string,
  });
  expect(stdout).toContain('it made no call after the launch');
  expect(stdout + stderr).not.toContain(key);
  await expect.poll(async () => isAlive(Number(await readFile(join(folder, 'pid'), 'utf8')))).toBe(false);
});

test('Ctrl-C ends the app too', async () => {
  const { folder, command } = await idleApp();
  const child = spawn(process.execPath, certify('--start', command, '--patience', '600'), { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  await expect.poll(() => existsSync(join(folder, 'pid')), { timeout: 60_000 }).toBe(true);
  child.kill('SIGINT');
  expect(await exited).not.toBe(0);
  await expect.poll(async () => isAlive(Number(await readFile(join(folder, 'pid'), 'utf8')))).toBe(false);
});

test.each([
  ['exit 3', /the command of --start ended \(exit code 3\), and no app runs/],
  ['kill -9 $$', /the command of --start ended \(SIGKILL\), and no app runs/],
  ['/no/such/program', /the command of --start ended \(exit code 127\), and no app runs/],
])('%s: the command that ended is named', async (command, message) => {
  await expect(run(process.execPath, certify('--start', command))).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(message) as string,
  });
});

test('an app that ends in the middle fails at once, and the message says how it ended', async () => {
  const { folder } = await idleApp();
  // It answers the launch, and ends a moment later.
  const code = `require('node:http').createServer((req, res) => {
    res.end('ok');
    if (req.url.startsWith('/launch')) setTimeout(() => process.exit(3), 300);
  }).listen(Number(process.env.PORT), '127.0.0.1');`;
  await writeFile(join(folder, 'app.cjs'), code);
  const began = performance.now();
  const command = `cd '${folder}' && '${process.execPath}' app.cjs`;
  const { stdout } = await run(process.execPath, [...certify('--start', command), '--patience', '600']).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toMatch(/: the app ended \(exit code 3\); it made no call after the launch/);
  expect(stdout).toMatch(/FINISHED FAILED/);
  expect(performance.now() - began).toBeLessThan(300_000);
});

test('a port on which something answers is refused', async () => {
  const { url } = await startScriptedServer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  await expect(
    run(process.execPath, certify('--start', 'sleep 60', '--launch-url', `${url}/launch`)),
  ).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`something answers at ${url} already`) as string,
  });
});

test('the app has time to end, also behind a shell, and gets no setting of the sandbox', async () => {
  const folder = await testFolder();
  const code = `
    const { writeFileSync } = require('node:fs');
    process.on('SIGTERM', () => setTimeout(() => (writeFileSync('ended', String(process.env.SANDBOX_ADMIN_KEY)), process.exit()), 500));
    require('node:http').createServer((req, res) => res.end('ok')).listen(Number(process.env.PORT), '127.0.0.1');`;
  await writeFile(join(folder, 'app.cjs'), code);
  const command = `cd '${folder}' && '${process.execPath}' app.cjs; true`;
  const env = { ...process.env, SANDBOX_ADMIN_KEY: 'x'.repeat(40) };
  await run(process.execPath, certify('--start', command), { env }).catch(() => {});
  expect(await readFile(join(folder, 'ended'), 'utf8')).toBe('undefined');
});

test.each([
  [{ level: 'exemplary', status: 'FINISHED', result: 'PASSED' }, ['exemplary', 'brightgreen']],
  [{ level: null, status: 'FINISHED', result: 'FAILED' }, ['failed', 'red']],
  [{ level: null, status: 'INTERRUPTED', result: 'FAILED' }, ['not certified', 'lightgrey']],
  [{ level: null, status: 'FINISHED', result: 'NOT_EXERCISED' }, ['not certified', 'lightgrey']],
] as const)('the badge of %o', (report, [message, color]) => {
  expect(badgeOf(report)).toEqual({ schemaVersion: 1, label: 'marketplace', message, color });
});
