// @module-tag all
/** The sandbox and certifier as somebody has them who works in another language: one tarball, and nothing of this repository. */
import { execFile, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, sharedFolder } from '../support/folders.ts';
import { needing, registry } from '../support/needs.ts';

const run = promisify(execFile);
const timeout = 900_000;
const npm = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
const apiKey = 'a-key-for-an-app-in-python';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('on the oldest Node that it promises, without GDAL and bubblewrap', needing(await registry()), () => {
  let project: string;
  let node: string;
  let python: string;

  beforeAll(async () => {
    const folder = await sharedFolder();
    [project, node] = [
      join(folder, 'project'),
      join(folder, 'node/node_modules', `node-linux-${process.arch}/bin/node`),
    ];
    await run(process.execPath, [join(projectRoot, 'scripts/sandbox-package.mjs'), folder], {
      env: { ...process.env, INIT_CWD: folder },
    });
    const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
    await mkdir(project);
    await writeFile(join(project, 'package.json'), '{"name":"somebody","private":true,"type":"module"}');
    await run('npm', ['install', ...npm, join(folder, tarball)], { cwd: project });
    const { engines } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    const oldest = `${/^>=(\d+\.\d+)$/.exec(engines.node)?.[1]}.0`;
    await run('npm', ['install', ...npm, '--prefix', join(folder, 'node'), `node-linux-${process.arch}@${oldest}`]);
    python = (await run('sh', ['-c', 'command -v python3'])).stdout.trim();
  }, timeout);

  /** Its PATH has neither bwrap nor another Node. */
  const command = (...args: string[]) =>
    [node, [join(project, 'node_modules/marketplace-sandbox/bin/marketplace-sandbox.mjs'), ...args]] as const;
  const environment = { PATH: '/nowhere', SANDBOX_API_KEY: apiKey };

  test('it has the platform, and neither app nor steps nor a native build', async () => {
    const rooms = await readdir(join(project, 'node_modules/marketplace-sandbox/dist'));
    expect(rooms).toEqual(expect.arrayContaining(['commands', 'contract', 'sandbox']));
    expect(rooms).not.toEqual(expect.arrayContaining(['app']));
    expect(rooms).not.toEqual(expect.arrayContaining(['steps']));
    const installed = await readdir(join(project, 'node_modules'));
    expect(
      installed.filter((name) => /^(gdal-async|sharp|onnxruntime-node|kysely|pg|node-linux-.*)$/.test(name)),
    ).toEqual([]);
  });

  test('the sandbox starts, says what it does without, and stops', async () => {
    const [program, args] = command('sandbox', '--port', '0', '--data', join(project, 'data'));
    const child = spawn(program, args, { cwd: project, env: environment });
    cleanUpLater(() => void child.kill('SIGKILL'));
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (printed += String(bytes)));
    await expect.poll(() => printed, { timeout: 120_000 }).toMatch(/^sandbox ready http/m);
    expect(printed).toContain(
      'uploaded files are not inspected, and rasters are not drawn: GDAL is not installed here',
    );
    const [, url = ''] = /^sandbox ready (\S+)$/m.exec(printed) ?? [];
    for (const path of ['/', '/catalog', '/files', '/inference', '/launches', '/openapi.json'])
      expect((await fetch(`${url}${path}`)).status, path).toBe(200);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  test(
    'the app in Python is certified by it',
    async () => {
      const [port, appPort] = [await freePort(), await freePort()];
      const app = spawn(python, [join(project, 'node_modules/marketplace-sandbox/examples/python/app.py')], {
        env: {
          ...process.env,
          PLATFORM_URL: `http://127.0.0.1:${port}`,
          PLATFORM_API_KEY: apiKey,
          PORT: String(appPort),
        },
      });
      cleanUpLater(() => void app.kill());
      const launch = ['--port', String(port), '--launch-url', `http://127.0.0.1:${appPort}/launch`];
      const scenarios = ['approve-at-once', 'reject', 'chunk-cut'].flatMap((id) => ['--scenario', id]);
      const [program, args] = command('certify', ...launch, ...scenarios, '--html', 'report.html');
      const { stdout } = await run(program, args, { cwd: project, env: environment }).catch(
        (error: unknown) => error as { stdout: string },
      );
      expect(stdout).toMatch(/finished +approve-at-once/);
      expect(stdout).toMatch(/finished +chunk-cut/);
      expect(stdout).not.toMatch(/FAILED|INTERRUPTED/);
      expect(await readFile(join(project, 'report.html'), 'utf8')).toContain('upload-after-approval');
    },
    timeout,
  );

  test.each([
    [
      ['certify'],
      /--launch-url is required: it names the app to judge, and this package has none of its own\n\nusage: npx marketplace-sandbox certify/,
    ],
    [['certfy'], /there is no command certfy\. Did you mean certify\?/],
    [['certify', '--launch-url', 'http://127.0.0.1:9/launch', '--challenge', 'x'], /GDAL is not installed here/],
  ])('%j is refused with a sentence', async (args, message) => {
    const [program, line] = command(...args);
    await expect(run(program, line, { cwd: project, env: environment })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(message) as string,
    });
  });
});
