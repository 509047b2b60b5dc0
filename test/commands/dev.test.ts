// @module-tag all
/** `npm run dev`: both servers, restarted when their files change however that comes about, and nothing left when it ends. */
import { mkdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../support/folders.ts';
import { geoTiff } from '../support/geotiff.ts';
import { mutant } from '../support/mutant.ts';
import { findProgram } from '../../scripts/needs.mjs';
import { needing, unless } from '../support/needs.ts';
import { startCommand } from '../support/processes.ts';

/** In a copy of the project, whose files may be changed. */
async function startDev(...more: string[]) {
  const project = await mutant([]);
  const data = await testFolder();
  const run = startCommand('dev', ['--port', '0', '--app-port', '0', '--data', data, ...more], {}, project);
  await expect.poll(run.output, { timeout: 900_000 }).toMatch(/Both restart/);
  const said = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(run.output())?.[1] ?? '';
  const times = (text: string) => run.output().split(text).length - 1;
  return { project, data, run, said, restarts: (name: string) => times(`\n${name} restarted`), times };
}

const timeout = 900_000;
const openssl = unless(findProgram(['openssl']) !== null, 'openssl is not installed', 'apt-get install openssl');
const soon = { timeout: 900_000 };

test(
  'prints addresses and key, readable lines of both, takes what is to be imported, and stops both',
  { timeout },
  async () => {
    const scene = join(await testFolder(), 'my-scene');
    await mkdir(scene);
    for (const band of ['B3', 'B4'])
      await writeFile(join(scene, `x_${band}.tif`), geoTiff({ width: 20, height: 10, value: (x) => x }));
    const { run, said } = await startDev('--import', scene);
    const [sandbox, app] = [said('sandbox'), said('app')];
    const { apps } = (await (await fetch(`${sandbox}/sandbox/apps`)).json()) as {
      apps: { id: string; launchUrl: string }[];
    };
    expect(apps).toContainEqual(expect.objectContaining({ id: 'reference-app', launchUrl: `${app}/launch` }));
    const items = await fetch(`${sandbox}/public/stac/collections/my-scene/items`, {
      headers: { 'x-api-key': said('key') },
    });
    expect(((await items.json()) as { features: { id: string }[] }).features.map(({ id }) => id)).toEqual(['x']);
    expect(run.output()).toMatch(/^sandbox {2}imported 1 items from /m);
    expect(run.output()).toMatch(/^sandbox {2}\[\d\d:\d\d:\d\d\.\d{3}\] INFO: /m);
    expect(run.output()).toMatch(/^app {6}\[\d\d:\d\d:\d\d\.\d{3}\] INFO: /m);
    run.child.kill('SIGTERM');
    expect(await run.exited).toBe(0);
    expect(run.output()).not.toContain('ended unexpectedly');
    for (const url of [sandbox, app]) await expect(fetch(url)).rejects.toThrow();
  },
);

test(
  '--https: a browser keeps the cookies of a framed app, which need TLS',
  { timeout, ...needing(openssl) },
  async () => {
    const { data, said, run } = await startDev('--https');
    const ca = await readFile(join(data, 'tls/cert.pem'));
    const ask = (url: string, body?: object) =>
      new Promise<{ headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
        const headers = body ? { 'content-type': 'application/json' } : {};
        const sent = request(url, { ca, method: body ? 'POST' : 'GET', headers }, (answer) => {
          let text = '';
          answer.setEncoding('utf8').on('data', (part: string) => (text += part));
          answer.once('end', () => resolve({ headers: answer.headers, text }));
        });
        sent.once('error', reject).end(body && JSON.stringify(body));
      });
    const launched = await ask(`${said('sandbox')}/sandbox/launches`, { appId: 'reference-app' });
    const { launchUrl } = JSON.parse(launched.text) as { launchUrl: string };
    expect(launchUrl).toMatch(/^https:/);
    // The app asks the sandbox who the user is, by TLS too.
    const [cookie] = (await ask(launchUrl)).headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/; HttpOnly; Secure; Partitioned; SameSite=None$/);
    run.child.kill('SIGTERM');
    expect(await run.exited).toBe(0);
  },
);

describe('restarts', () => {
  test(
    'the one whose file is replaced by rename, as editors do, again and again, where it was',
    { timeout },
    async () => {
      const { project, restarts, said, run } = await startDev();
      const page = join(project, 'templates/app/home.eta');
      for (const n of [1, 2, 3]) {
        await writeFile(`${page}.new`, `${await readFile(page, 'utf8')}<!-- ${n} -->`);
        await rename(`${page}.new`, page);
        await expect.poll(() => restarts('app'), soon).toBe(n);
      }
      expect(restarts('sandbox')).toBe(0);
      expect((await fetch(`${said('app')}/health`)).status).toBe(200);
      run.child.kill('SIGINT');
      expect(await run.exited).toBe(0);
    },
  );

  test('after a mistake in the code, when that is mended; the other goes on meanwhile', { timeout }, async () => {
    const { project, restarts, times, said } = await startDev();
    const code = join(project, 'src/sandbox/create-sandbox.ts');
    const right = await readFile(code);
    await writeFile(code, 'export const = ;');
    await expect.poll(() => times('sandbox does not start'), soon).toBe(1);
    expect((await fetch(`${said('app')}/health`)).status).toBe(200);
    await writeFile(code, right);
    await expect.poll(() => restarts('sandbox'), soon).toBe(1);
    const { apps } = (await (await fetch(`${said('sandbox')}/sandbox/apps`)).json()) as { apps: { id: string }[] };
    expect(apps.map(({ id }) => id)).toContain('reference-app');
  });

  test(
    'both, for many files at once, as a branch is switched; a change while one restarts is not lost',
    { timeout },
    async () => {
      const { project, restarts } = await startDev();
      const now = new Date();
      await Promise.all(
        ['src/contract/kit-error.ts', 'src/app/config.ts', 'src/sandbox/config.ts', 'templates/shared/style.css'].map(
          (path) => utimes(join(project, path), now, now),
        ),
      );
      await rm(join(project, 'templates/app/error.eta'));
      await expect.poll(() => restarts('app') >= 1 && restarts('sandbox') >= 1, soon).toBe(true);
      const before = restarts('app');
      await utimes(join(project, 'src/app/config.ts'), new Date(), new Date());
      await new Promise((resolve) => setTimeout(resolve, 400));
      // By now it is restarting.
      await writeFile(join(project, 'templates/app/error.eta'), 'changed');
      await expect.poll(() => restarts('app'), soon).toBe(before + 2);
    },
  );
});

test('a wrong option is a clear error, and --help tells all', async () => {
  const wrong = startCommand('dev', ['--prot', '1']);
  expect(await wrong.exited).toBe(1);
  expect(wrong.output()).toContain('usage: npm run dev');
  const help = startCommand('dev', ['--help']);
  expect(await help.exited).toBe(0);
  expect(help.output()).toContain('--import PATH');
});
