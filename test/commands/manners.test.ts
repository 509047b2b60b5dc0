/** Commands read paths as their caller means them, and leave nothing, however they end. */
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { createPlatformClient } from '../../src/platform-client/index.ts';
import { fetchFile } from '../../src/commands/demo/fetch-result.ts';
import { stageInputs } from '../../src/commands/demo/stage-inputs.ts';
import { loadMyApp } from '../../src/commands/my-app.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { findOlderNode, needing, olderNode } from '../support/needs.ts';
import { processesIn, startCommand } from '../support/processes.ts';
import { onlyInAll } from '../support/tags.ts';

async function folderOf(...names: string[]): Promise<string> {
  const folder = join(await testFolder(), ...names);
  await mkdir(folder, { recursive: true });
  return folder;
}

test.each(['its reader has had enough', 'SIGINT'])('test-step leaves no folder: %s', async (how) => {
  const tmp = await folderOf('tmp');
  const { child, output, exited } = startCommand('test-step', ['cog'], { TMPDIR: tmp });
  await expect.poll(() => readdir(tmp), { timeout: 600_000, interval: 20 }).not.toEqual([]);
  if (how === 'SIGINT') child.kill('SIGINT');
  else child.stdout.destroy();
  expect(await exited).toBe(how === 'SIGINT' ? 130 : 0);
  expect(await readdir(tmp)).toEqual([]);
  expect(output()).not.toMatch(/EPIPE| {4}at /);
});

test.each(['auto', 'none'])(
  'a process that exits leaves no folder into which a child still writes; confinement %s',
  async (mode) => {
    const tmp = await folderOf('tmp');
    const source = (path: string) => JSON.stringify(new URL(path, pathToFileURL(`${projectRoot}/`)).href);
    const program = `
    import { existsSync } from 'node:fs';
    import { join } from 'node:path';
    import { establishConfinement, runInChild } from ${source('src/child/index.ts')};
    import { scratchFolder } from ${source('src/files/index.ts')};
    const confinement = await establishConfinement({ mode: '${mode}', warn() {} });
    const { path } = scratchFolder('test');
    const workFolder = join(path, 'work');
    const module = new URL(${source('test/support/scribbling-job.ts')});
    runInChild({ module, input: null, workFolder, confinement }).catch(() => {});
    while (!existsSync(join(workFolder, '50'))) await new Promise((resolve) => setTimeout(resolve, 1));
    process.exit(7);`;
    const args = ['--import', './scripts/preload.mjs', '--input-type=module', '--eval', program];
    for (let i = 0; i < 5; i++) {
      const { status, stderr } = spawnSync(process.execPath, args, {
        cwd: projectRoot,
        env: { ...process.env, TMPDIR: tmp },
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([7, '']);
    }
    expect(await readdir(tmp)).toEqual([]);
  },
);

const oldNode = findOlderNode();
const terminal = ['script', '-qec', '__COMMAND__', '/dev/null'];

describe(
  'on an older Node the launcher starts the right one, which cleans up',
  { tags: [onlyInAll], ...needing(olderNode(oldNode)) },
  () => {
    test.each([
      ['SIGINT of a terminal', terminal],
      ['SIGINT', []],
      ['SIGTERM', []],
    ] as const)('%s', async (how, around) => {
      const tmp = await folderOf('tmp');
      const command = [oldNode!, join(projectRoot, 'bin/marketplace-app-kit.mjs'), 'test-step', 'cog'];
      const [program, ...args] =
        around.length > 0 ? around.map((one) => one.replace('__COMMAND__', command.join(' '))) : command;
      const child = spawn(program!, args, { env: { ...process.env, TMPDIR: tmp }, stdio: ['pipe', 'pipe', 'pipe'] });
      const exited = once(child, 'close');
      cleanUpLater(() => void child.kill('SIGKILL'));
      let output = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += String(bytes)));
      await expect.poll(() => readdir(tmp), { timeout: 600_000, interval: 20 }).not.toEqual([]);
      if (around.length > 0) child.stdin.write('\u0003');
      else child.kill(how as NodeJS.Signals);
      const [code, signal] = (await exited) as [number | null, string | null];
      expect({ code, signal, output }).toMatchObject({ code: 130, signal: null });
      expect(await readdir(tmp)).toEqual([]);
      await expect.poll(() => processesIn(tmp), { timeout: 600_000 }).toEqual([]);
    });
  },
);

test('an input that is a symbolic link is the file behind it', async () => {
  const folder = await folderOf('links');
  const staged = join(folder, 'staged');
  await writeFile(join(folder, 'a.tif'), 'bytes');
  await symlink('a.tif', join(folder, 'scene.tif'));
  expect(await stageInputs([join(folder, 'scene.tif')], staged)).toBe(1);
  expect(await readFile(join(staged, 'scene.tif'), 'utf8')).toBe('bytes');
});

test('two that fetch to one path at once: each tells of the bytes that it has written', async () => {
  const folder = await folderOf('out');
  let asked = 0;
  const server = createServer((req, res) => {
    if (req.url!.startsWith('/public')) return void res.end(`http://127.0.0.1:${port}/file-${++asked}`);
    // The second begins before the first has ended.
    res.write(req.url!);
    setTimeout(() => res.end(), req.url === '/file-1' ? 600 : 200);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  cleanUpLater(() => void server.close());
  const client = createPlatformClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'k'.repeat(32) });
  cleanUpLater(() => client.close());
  const ends = await Promise.allSettled([1, 2].map(() => fetchFile(client, 'id', folder, 'a.tif')));
  const told = ends.map((end) => (end.status === 'fulfilled' ? end.value.sizeBytes : String(end.reason)));
  expect(told).toEqual([7, 7]);
  expect(await readdir(folder)).toEqual(['a.tif']);
});

test('paths are relative to the folder that the command was called in', async () => {
  const called = await folderOf('called');
  await writeFile(join(called, 'scene.tif'), geoTiff({ width: 20, height: 10, value: (x) => x }));
  const run = startCommand('sandbox', ['--port', '0', '--seed', 'none', '--data', 'own', '--import', 'scene.tif'], {
    INIT_CWD: called,
  });
  await expect.poll(run.output, { timeout: 600_000 }).toMatch(/^sandbox ready /m);
  expect(run.output()).toMatch(/^imported 1 items from /m);
  expect(await readdir(called)).toContain('own');
  vi.stubEnv('INIT_CWD', called);
  try {
    await expect(loadMyApp({ MY_APP: 'app.ts' })).rejects.toThrow(`there is no module ${join(called, 'app.ts')}`);
  } finally {
    vi.unstubAllEnvs();
  }
});
