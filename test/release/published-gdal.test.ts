/** The set-up takes the binding that gdal-async publishes if it can be had within seconds, and builds one otherwise. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { neededDrivers } from '../../scripts/needs.mjs';
import { keptDrivers } from '../../src/child/drivers.ts';
import { projectRoot, testFolder } from '../support/folders.ts';

const system = `node-v${process.versions.modules}-${process.platform}-${process.arch}`;
/** A gdal-async that loads its binding, and asks it for drivers. */
const installs = `
mkdir -p node_modules/gdal-async
echo '{"version":"3.0.0","main":"index.js","binary":{"host":"http://192.0.2.1/releases/"}}' > node_modules/gdal-async/package.json
if [ -n "$KEPT" ]; then mkdir -p node_modules/gdal-async/lib/binding/${system}; printf '%s' "$KEPT" > node_modules/gdal-async/lib/binding/${system}/gdal.node; fi
echo 'const b = JSON.parse(require("fs").readFileSync(__dirname + "/lib/binding/${system}/gdal.node")); exports.drivers = { get(name) { if (!b.includes(name)) throw Error(name) } }' > node_modules/gdal-async/index.js`;

async function archiveOf(drivers: readonly string[]): Promise<Buffer> {
  const folder = await testFolder();
  await mkdir(join(folder, system));
  await writeFile(join(folder, system, 'gdal.node'), JSON.stringify(drivers));
  return execFileSync('tar', ['-cz', '-C', folder, system]);
}

/** Runs the set-up on a machine without apt-get, whose npm installs the gdal-async above. */
async function setUp(answer: RequestListener, env: Readonly<Record<string, string>> = {}) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => {
    server.closeAllConnections();
    server.close();
  });
  const folder = await testFolder();
  for (const name of ['scripts', 'src/needs.json', 'package.json', 'package-lock.json'])
    await cp(join(projectRoot, name), join(folder, name), { recursive: true });
  const bin = join(folder, 'bin');
  await mkdir(bin);
  for (const name of ['bash', 'mkdir', 'tar', 'gzip']) await symlink(`/bin/${name}`, join(bin, name));
  await symlink(process.execPath, join(bin, 'node'));
  await writeFile(join(bin, 'npm'), `#!/bin/bash\n${installs}\n`, { mode: 0o755 });
  const mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}/releases`;
  const child = spawn(process.execPath, ['scripts/setup.mjs'], {
    cwd: folder,
    env: { PATH: bin, npm_config_gdal_binary_host_mirror: mirror, ...env },
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => (output += part));
  const [status] = (await once(child, 'close')) as [number];
  const binding = await readFile(
    join(folder, 'node_modules/gdal-async/lib/binding', system, 'gdal.node'),
    'utf8',
  ).catch(() => null);
  return { status, output, binding };
}

const drivers = [...neededDrivers, 'Another'];
const builds = /building the binding against the system's GDAL[^]*GDAL 3\.6 or later with its headers/;

test('uses a published binding, without root or a compiler', async () => {
  const archive = await archiveOf(drivers);
  const asked: (string | undefined)[] = [];
  const { status, output, binding } = await setUp((req, res) => {
    asked.push(req.url);
    res.end(archive);
  });
  expect([status, output]).toEqual([0, expect.stringContaining(createHash('sha256').update(archive).digest('hex'))]);
  expect(asked).toEqual([`/releases/v3.0.0/${system}.tar.gz`]);
  expect(JSON.parse(binding ?? 'null')).toEqual(drivers);
});

test('uses a binding with the digest of GDAL_PREBUILT_SHA256, and stops if the digest differs', async () => {
  const archive = await archiveOf(drivers);
  const digest = createHash('sha256').update(archive).digest('hex');
  const good = await setUp((_req, res) => res.end(archive), { GDAL_PREBUILT_SHA256: digest.toUpperCase() });
  expect(good.status).toBe(0);
  const bad = await setUp((_req, res) => res.end(archive), { GDAL_PREBUILT_SHA256: digest.replaceAll(/[0-9]/g, 'f') });
  expect([bad.status, bad.output, bad.binding]).toEqual([1, expect.stringContaining('is not the file you mean'), null]);
});

test.each<[string, RequestListener, RegExp]>([
  ['the server has none for this system', (_req, res) => res.writeHead(404).end(), /status 404/],
  ['the server does not answer', () => {}, /no answer within 5 s/],
  [
    'the archive is cut',
    (_req, res) => res.writeHead(200, { 'content-length': '9' }).write('abc', () => res.destroy()),
    /UND_ERR_SOCKET|ECONNRESET|terminated/,
  ],
  [
    'a redirect leads to an address without TLS',
    (_req, res) => res.writeHead(302, { location: 'http://192.0.2.1/a' }).end(),
    /http:\/\/192\.0\.2\.1 does not use TLS/,
  ],
  ['the archive is not a tar file', (_req, res) => res.end('an error page'), /does not work on this system/],
])('falls back to a build if %s', async (_name, answer, says) => {
  const { status, output, binding } = await setUp(answer);
  expect([status, binding]).toEqual([1, null]);
  expect(output).toMatch(says);
  expect(output).toMatch(builds);
});

test('falls back to a build if the binding lacks a driver, and removes it', async () => {
  const archive = await archiveOf(drivers.filter((name) => name !== 'netCDF'));
  const { output, binding } = await setUp((_req, res) => res.end(archive));
  expect([output, binding]).toEqual([expect.stringMatching(builds), null]);
});

test('follows a redirect, as GitHub sends', async () => {
  const archive = await archiveOf(drivers);
  const { status } = await setUp((req, res) =>
    req.url === '/store' ? res.end(archive) : res.writeHead(302, { location: '/store' }).end(),
  );
  expect(status).toBe(0);
});

test('keeps a binding that was built here, if the published one does not work', async () => {
  const { binding } = await setUp((_req, res) => res.end('an error page'), { KEPT: 'built here' });
  expect(binding).toBe('built here');
});

test('a binding must have every driver that the kit uses', () => {
  // GDAL 3.11 merged the driver Memory into MEM.
  const used = [...keptDrivers({ confined: true })].filter((name) => name !== 'Memory');
  expect(neededDrivers.toSorted()).toEqual(used.toSorted());
});

test('GDAL_PREBUILT=no makes no request', async () => {
  let asked = 0;
  const { output } = await setUp(() => (asked += 1), { GDAL_PREBUILT: 'no' });
  expect([asked, output]).toEqual([0, expect.stringContaining('GDAL 3.6 or later with its headers')]);
});
