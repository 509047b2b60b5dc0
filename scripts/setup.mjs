// Sets up everything that the kit's commands need, and nothing twice. Plain JavaScript: it runs on the
// machine's own Node, which may be older than the one that it sets up. An argument names the command that it sets up for
// (src/needs.json): `npm run demo` by default; `npm test` and `npm run test:all` want more.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findProgram, installCommand, missingOf, neededDrivers, needs } from './needs.mjs';

const kit = dirname(dirname(fileURLToPath(import.meta.url)));
/** The project that the kit is a package of; null where the kit is the project. */
const host = /^(.*?)[/\\]node_modules[/\\]/.exec(kit)?.[1] ?? null;
const isPackage = host !== null;
const root = host ?? kit;
const modules = join(root, 'node_modules');
const stampPath = join(modules, '.marketplace-app-kit-setup.json');
const shippedNode = join(modules, `node-${process.platform}-${process.arch}`, 'bin', 'node');
/** `npm ci` does not touch this folder. */
const cache = join(root, '.cache');
const lockPath = join(cache, 'setup.lock');
const buildLog = join(modules, '.gdal-async-build.log');
const neededNode = 24;
const oldestGdal = [3, 6];
/** Commands, each of which wants what those before it want. */
const commands = ['npm run demo', 'npm test', 'npm run test:all'];
const wantedFor = process.argv[2] ?? commands[0];
/** Time limit for the first answer of the server of published bindings. */
const answerWithinMs = 5_000;
/** Time limit for the download of a published binding. */
const archiveWithinMs = 60_000;
/** Size limit for the archive of a published binding. It has about 40 MB. */
const maxArchiveBytes = 300 * 1024 * 1024;

const binding = join(modules, 'gdal-async', 'lib', 'binding');
const versionOfGdalAsync = () => JSON.parse(readText(join(modules, 'gdal-async', 'package.json')) || '{}').version;
/** Place of a built binding while `npm ci` empties node_modules. A failed `npm ci` leaves it there for the next set-up. */
const keptBinding = (version) => join(cache, `gdal-async-${version}`);

/** Ends the set-up with a message and no stack. */
class SetupError extends Error {}

const say = (text) => console.error(`set-up: ${text}`);

try {
  if (!isSetUp()) {
    const unlock = await lockSetUp();
    try {
      // Another set-up may have finished while this one waited.
      if (!isSetUp()) await setUp();
    } finally {
      unlock();
    }
  }
  provideOptional();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`\nset-up could not go on: ${error.message}`);
  process.exitCode = 1;
}

function digestOfLock() {
  return createHash('sha256')
    .update(readFileSync(isPackage ? join(kit, 'package.json') : join(root, 'package-lock.json')))
    .digest('hex');
}

function isSetUp() {
  const stamp = readStamp();
  return (
    stamp.lock === digestOfLock() &&
    existsSync(stamp.gdalBinary ?? '') &&
    existsSync(stamp.node ?? '') &&
    // A binding fits one ABI. The lock file pins the shipped Node, but the machine's own Node can change.
    (stamp.node === shippedNode || (stamp.node === process.execPath && stamp.abi === process.versions.modules)) &&
    (stamp.bubblewrap === 'found' || stamp.bubblewrap === 'not on this system' || stamp.toldOfBubblewrap)
  );
}

/** Locks the set-up of this project. Waits if another process holds the lock. */
async function lockSetUp() {
  mkdirSync(cache, { recursive: true });
  for (let isTold = false; ; isTold = true) {
    try {
      writeFileSync(lockPath, String(process.pid), { flag: 'wx' });
      const unlock = () => rmSync(lockPath, { force: true });
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
        process.once(signal, () => {
          unlock();
          process.exit(130);
        });
      return unlock;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const pid = Number(readText(lockPath));
    if (!Number.isInteger(pid) || pid <= 0 || !isRunning(pid)) {
      // The owner has ended, or has created the file and not written to it yet.
      await sleep(1_000);
      if (Number(readText(lockPath)) === pid) rmSync(lockPath, { force: true });
    } else {
      if (!isTold) say(`another set-up of this folder is running (process ${pid}); waiting for it`);
      await sleep(500);
    }
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

async function setUp() {
  const lock = digestOfLock();
  if (readStamp().lock !== lock && !isPackage) {
    if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new SetupError(
        `node_modules is a symbolic link to ${realpathSync(modules)}, and npm ci would empty that folder. Run \`npm run setup\` in the project that it belongs to, or remove the link.`,
      );
    keepBinding();
    installPackages();
  }
  restoreBinding();
  const node = findNode();
  if (!loadsGdal(node)) await provideGdal(node);
  const bubblewrap = await provideBubblewrap();
  // Told once: the servers say so at every start.
  writeFileSync(
    stampPath,
    JSON.stringify({
      lock,
      node,
      abi: abiOf(node),
      gdalBinary: gdalBinary(node),
      bubblewrap,
      toldOfBubblewrap: bubblewrap === 'missing',
    }),
  );
  say('done');
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(stampPath, 'utf8'));
  } catch {
    return {};
  }
}

/** Keeps a built GDAL binding through `npm ci`, which would throw away minutes of work for any change of the lock file. */
function keepBinding() {
  if (!existsSync(binding)) return;
  const kept = keptBinding(versionOfGdalAsync());
  cpSync(binding, `${kept}.partial`, { recursive: true });
  rmSync(kept, { recursive: true, force: true });
  renameSync(`${kept}.partial`, kept);
}

/** Also after a set-up that failed or was ended. */
function restoreBinding() {
  const kept = keptBinding(versionOfGdalAsync());
  if (!existsSync(kept)) return;
  if (!existsSync(binding)) cpSync(kept, binding, { recursive: true });
  rmSync(kept, { recursive: true, force: true });
}

function abiOf(node) {
  return spawnSync(node, ['-p', 'process.versions.modules'], { encoding: 'utf8' }).stdout.trim();
}

/** npm as it was called, or from PATH; run by a node that `npm ci` does not replace. */
function npmCommand(node) {
  const cli = process.env.npm_execpath;
  return cli && /npm-cli\.js$/.test(cli) ? [node ?? process.env.npm_node_execpath ?? process.execPath, cli] : ['npm'];
}

function installPackages() {
  say('installing packages as the lock file says (npm ci)');
  const [command, ...first] = npmCommand();
  const result = spawnSync(
    command,
    [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, NODE_ENV: 'development' },
    },
  );
  if (result.error?.code === 'ENOENT') throw new SetupError('npm is not installed');
  if (result.status !== 0)
    throw new SetupError(
      'npm ci failed (see above). It needs the npm registry, or a filled npm cache, and a writable project folder.',
    );
}

/** The Node that runs the kit: the one from the lock file, or the machine's own where that is new enough. */
function findNode() {
  if (runs(shippedNode)) return shippedNode;
  if (Number(process.versions.node.split('.')[0]) >= neededNode) return process.execPath;
  throw new SetupError(
    `Node ${neededNode} or later is needed on ${process.platform}-${process.arch}, this is ${process.version}. ` +
      `The lock file brings one for linux-x64 and linux-arm64 (glibc) only; install one from nodejs.org or by your package manager.`,
  );
}

function runs(node) {
  return existsSync(node) && spawnSync(node, ['--version']).status === 0;
}

/** True if the binding loads, and has these drivers. */
function loadsGdal(node, drivers = []) {
  const script = `const { drivers } = require('gdal-async'); for (const name of ${JSON.stringify(drivers)}) drivers.get(name)`;
  return spawnSync(node, ['-e', script], { cwd: root, stdio: 'ignore' }).status === 0;
}

function gdalBinary(node) {
  const script = `const { find } = require('./node_modules/gdal-async/node_modules/@mapbox/node-pre-gyp'); console.log(find('./node_modules/gdal-async/package.json'))`;
  return resolve(root, spawnSync(node, ['-e', script], { cwd: root, encoding: 'utf8' }).stdout.trim());
}

async function provideGdal(node) {
  if (await takePublishedGdal(node)) return;
  await ensureSystemGdal();
  // A binding that was kept lacked the library alone.
  if (loadsGdal(node)) return;
  await buildGdal(node);
  if (!loadsGdal(node))
    throw new SetupError(`gdal-async was built but does not load. The log of the build is ${buildLog}`);
}

/**
 * Takes the binding that gdal-async publishes for this system, over TLS, as npm does for everybody who installs gdal-async.
 * `GDAL_PREBUILT_SHA256` is the digest that it must have, `GDAL_PREBUILT=no` builds in every case. Returns false if the binding
 * cannot be had within seconds or does not fit; the caller then builds one.
 */
async function takePublishedGdal(node) {
  if (process.env.GDAL_PREBUILT === 'no') return false;
  const { version, binary } = JSON.parse(readFileSync(join(modules, 'gdal-async', 'package.json'), 'utf8'));
  if (!binary) return false;
  // npm's setting for a mirror of these archives.
  const host = process.env.npm_config_gdal_binary_host_mirror ?? binary.host;
  const name = `node-v${abiOf(node)}-${process.platform}-${process.arch}`;
  const address = new URL(`v${version}/${name}.tar.gz`, host.endsWith('/') ? host : `${host}/`);
  say(`fetching the published GDAL binding ${address.href}`);
  const { archive, problem } = await fetchArchive(address);
  if (!archive) {
    say(`  ${problem}; building the binding against the system's GDAL instead`);
    return false;
  }
  const digest = createHash('sha256').update(archive).digest('hex');
  const wanted = process.env.GDAL_PREBUILT_SHA256?.toLowerCase();
  if (wanted && digest !== wanted)
    throw new SetupError(
      `the published GDAL binding has the SHA-256 ${digest}, and GDAL_PREBUILT_SHA256 is ${wanted}: it is not the file you mean. Nothing of it was used.`,
    );
  // A binding that was built here may only lack a library of the system.
  const [target, kept] = [join(binding, name), join(binding, `${name}.kept`)];
  if (existsSync(target)) renameSync(target, kept);
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-app-kit-setup-'));
  writeFileSync(join(folder, 'gdal.tar.gz'), archive);
  mkdirSync(binding, { recursive: true });
  const { status } = spawnSync('tar', ['-xzf', join(folder, 'gdal.tar.gz'), '-C', binding], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  rmSync(folder, { recursive: true, force: true });
  if (status === 0 && loadsGdal(node, neededDrivers)) {
    rmSync(kept, { recursive: true, force: true });
    say(`  SHA-256 ${digest}`);
    return true;
  }
  rmSync(target, { recursive: true, force: true });
  if (existsSync(kept)) renameSync(kept, target);
  say("  it does not work on this system; building the binding against the system's GDAL instead");
  return false;
}

function isLoopback({ hostname }) {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
}

/** Fetches an archive. Returns its bytes, or the problem in words. */
async function fetchArchive(address) {
  const stop = new AbortController();
  const limit = (ms, problem) => setTimeout(() => stop.abort(new Error(problem)), ms);
  let timer = limit(answerWithinMs, `no answer within ${answerWithinMs / 1_000} s`);
  try {
    let [at, response] = [address, null];
    for (let redirects = 0; redirects < 5 && response === null; redirects++) {
      if (at.protocol !== 'https:' && !isLoopback(at)) return { problem: `${at.origin} does not use TLS` };
      const answer = await fetch(at, { signal: stop.signal, redirect: 'manual' });
      const next = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : null;
      if (next === null) response = answer;
      else {
        await answer.body?.cancel();
        at = new URL(next, at);
      }
    }
    clearTimeout(timer);
    if (!response?.ok) return { problem: response ? `status ${response.status}` : 'too many redirects' };
    timer = limit(archiveWithinMs, `not complete within ${archiveWithinMs / 1_000} s`);
    const parts = [];
    let bytes = 0;
    for await (const part of response.body) {
      bytes += part.length;
      if (bytes > maxArchiveBytes) return { problem: `more than ${maxArchiveBytes} bytes` };
      parts.push(part);
    }
    return { archive: Buffer.concat(parts) };
  } catch (error) {
    return { problem: error.cause?.code ?? error.message };
  } finally {
    clearTimeout(timer);
  }
}

async function ensureSystemGdal() {
  if (systemGdal() && missingOf(needs['gdal-headers']) === null) return requireGdalVersion();
  const install = installCommand(['gdal-headers']);
  if (!onPath('apt-get')) {
    throw new SetupError(
      `GDAL ${oldestGdal.join('.')} or later with its headers (gdal-config), g++, make and python3 are needed to build gdal-async; install them by your package manager.`,
    );
  }
  const isRoot = process.getuid?.() === 0;
  const prefix = isRoot ? '' : 'sudo ';
  if (!isRoot && !process.env.CI && !(await confirm(`${prefix}${install}`))) {
    throw new SetupError(
      `GDAL's headers and a compiler are needed, and installing them needs root. Run\n\n    sudo apt-get update && sudo ${install}\n\nand then the same command again.`,
    );
  }
  say(`installing ${needs['gdal-headers'].debian.join(', ')} (apt)`);
  for (const command of ['apt-get update', install]) {
    const { status, line } = runApt(command);
    if (status !== 0)
      throw new SetupError(`\`${line}\` failed (see above). Run it by hand, and then the same command again.`);
  }
  requireGdalVersion();
}

/** Runs the command as root, or by sudo. */
function runApt(command) {
  const isRoot = process.getuid?.() === 0;
  const words = `${isRoot ? '' : process.env.CI ? 'sudo -n ' : 'sudo '}${command}`.split(' ');
  const { status } = spawnSync(words[0], words.slice(1), {
    stdio: [isRoot || process.env.CI ? 'ignore' : 'inherit', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return { status, line: words.join(' ') };
}

/**
 * Installs bubblewrap, which confines the processes that open foreign files. On a developer's machine, servers start
 * without it and report that. If it cannot be installed from here, this prints how to install it.
 */
async function provideBubblewrap() {
  if (process.platform !== 'linux') return 'not on this system';
  if (onPath('bwrap')) return 'found';
  const isRoot = process.getuid?.() === 0;
  const install = installCommand(['bubblewrap']);
  if (onPath('apt-get') && (isRoot || process.env.CI || (await confirm(`sudo ${install}`)))) {
    say('installing bubblewrap (apt)');
    for (const command of ['apt-get update', install]) runApt(command);
  } else {
    say(
      `bubblewrap, which confines the processes that open foreign files, is not installed. Install it by your package manager${onPath('apt-get') ? ': sudo apt-get install bubblewrap' : ''}`,
    );
  }
  return onPath('bwrap') ? 'found' : 'missing';
}

async function confirm(command) {
  if (!process.stdin.isTTY) return false;
  const ask = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await ask.question(`set-up: run \`${command}\` now? [y/N] `);
  ask.close();
  return /^y(es)?$/i.test(answer.trim());
}

function systemGdal() {
  const result = spawnSync('gdal-config', ['--version'], { encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : null;
}

function requireGdalVersion() {
  const version = systemGdal() ?? 'none';
  const [major, minor] = version.split('.').map(Number);
  if (major > oldestGdal[0] || (major === oldestGdal[0] && minor >= oldestGdal[1])) return;
  throw new SetupError(`GDAL ${oldestGdal.join('.')} or later is needed, the system has ${version}`);
}

function onPath(name) {
  return findProgram([name]) !== null;
}

/**
 * Programs that the kit works without, and that tests of this command use. As root and in CI they are installed; elsewhere
 * the command to type is printed, and the tests that need them skip and say so. Never a reason to fail.
 */
function provideOptional() {
  const optional = Object.keys(needs).filter(
    (name) =>
      commands.indexOf(needs[name].installedBy) > 0 &&
      commands.indexOf(needs[name].installedBy) <= commands.indexOf(wantedFor),
  );
  const missing = optional.filter((name) => missingOf(needs[name]) !== null);
  if (missing.length === 0) return;
  const install = installCommand(missing);
  const what = missing.map((name) => needs[name].what).join(', ');
  const isRoot = process.getuid?.() === 0;
  if (!onPath('apt-get') || !(isRoot || process.env.CI)) {
    say(
      `tests that need ${what} will be skipped. To run them too: ${onPath('apt-get') ? `sudo ${install}` : 'install these by your package manager'}`,
    );
    return;
  }
  say(`installing ${what} (apt)`);
  // The programs of PostgreSQL are wanted, not a cluster of the system's.
  if (missing.includes('postgresql') && isRoot) {
    mkdirSync('/etc/postgresql-common/createcluster.d', { recursive: true });
    writeFileSync('/etc/postgresql-common/createcluster.d/marketplace-app-kit.conf', 'create_main_cluster = false\n');
  }
  for (const command of ['apt-get update', install]) {
    const { status, line } = runApt(command);
    if (status !== 0) return say(`\`${line}\` failed (see above): tests that need ${what} will be skipped`);
  }
}

async function buildGdal(node) {
  say(`building the GDAL binding; this takes 2 to 5 minutes on an idle machine, once. Its log is ${buildLog}`);
  const [command, ...first] = npmCommand(node);
  const log = openSync(buildLog, 'w');
  const started = Date.now();
  const still = setInterval(() => say(`  still building (${Math.round((Date.now() - started) / 1000)} s)`), 30_000);
  const headers = dirname(dirname(node));
  const status = await new Promise((settle) => {
    const build = spawn(command, [...first, 'rebuild', 'gdal-async', '--foreground-scripts'], {
      cwd: root,
      stdio: ['ignore', log, log],
      env: {
        ...process.env,
        PATH: [dirname(node), join(modules, '.bin'), process.env.PATH].join(delimiter),
        JOBS: 'max',
        npm_config_shared_gdal: 'true',
        npm_config_build_from_source: 'gdal-async',
        // Headers of the very Node that runs the kit, so that nothing is downloaded for the build.
        ...(existsSync(join(headers, 'include', 'node', 'node.h')) ? { npm_config_nodedir: headers } : {}),
      },
    });
    build.once('error', () => settle(1));
    build.once('exit', (code) => settle(code ?? 1));
  });
  clearInterval(still);
  closeSync(log);
  if (status === 0) return;
  const tail = readFileSync(buildLog, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
  throw new SetupError(`building gdal-async failed:\n\n${tail}\n\nThe whole log is ${buildLog}`);
}
