// Makes a bare Debian with debootstrap, Node and npm. It has this machine's settings for the package registries.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { installCommand, missingOf, needs } from './needs.mjs';

/** Error with the reason why this machine cannot run the test. */
export class Skipped extends Error {}

/** Returns a root folder below `cache` with Debian, git, certificates, Node, npm and one user. The first call makes it. Throws `Skipped` if this machine cannot. */
export function bareRoot(cache, user) {
  return rootFolder(cache, 'bare', ['ca-certificates', 'git'], (made) => {
    const node = ofMachine('node');
    mkdirSync(join(made, 'usr/local/lib/node_modules'), { recursive: true });
    cpSync(node, join(made, 'usr/local/bin/node'));
    cpSync(dirname(dirname(ofMachine('npm'))), join(made, 'usr/local/lib/node_modules/npm'), { recursive: true });
    for (const name of ['npm', 'npx'])
      run('ln', ['-s', `../lib/node_modules/npm/bin/${name}-cli.js`, join(made, 'usr/local/bin', name)]);
    const settings = ['registry', 'cafile'].map((name) => [name, output('npm', ['config', 'get', name])]).filter(([, value]) => !['', 'null', 'undefined'].includes(value)); // oxfmt-ignore
    writeFileSync(join(made, 'usr/local/etc/npmrc'), settings.map(([name, value]) => `${name}=${value}\n`).join(''));
    run('chroot', [made, 'useradd', '--create-home', user]);
    if (spawnSync('chroot', [made, '/usr/local/bin/npm', '--version']).status !== 0)
      throw new Skipped(`${node} does not run on a bare machine`);
  });
}

/** Returns a root folder below `cache` with Debian alone, and without documentation and translations, as in Debian's slim image. Licenses stay. */
export function slimRoot(cache) {
  return rootFolder(cache, 'slim', [], (made) => {
    const unwanted = ['info', 'locale', 'man'].map((name) => `usr/share/${name}`);
    const rules = [...unwanted, 'usr/share/doc'].map((path) => `path-exclude /${path}/*\n`);
    writeFileSync(
      join(made, 'etc/dpkg/dpkg.cfg.d/docker'),
      `${rules.join('')}path-include /usr/share/doc/*/copyright\n`,
    );
    for (const path of [...unwanted, 'var/lib/apt/lists', 'var/cache/apt'])
      rmSync(join(made, path), { recursive: true, force: true });
    run('find', [join(made, 'usr/share/doc'), '-type', 'f', '!', '-name', 'copyright', '-delete']);
  });
}

/** Makes Debian of this machine's release by debootstrap, with this machine's settings for packages, once. */
function rootFolder(cache, name, packages, finish) {
  if (process.platform !== 'linux') throw new Skipped(`it needs Linux, and this is ${process.platform}`);
  if (process.getuid?.() !== 0) throw new Skipped('it needs root, to make a root folder and to enter it');
  if (missingOf(needs.debootstrap) !== null)
    throw new Skipped(`debootstrap is not installed: ${installCommand(['debootstrap'])}`);
  const suite = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'bookworm';
  const folder = join(cache, `${name}-${suite}`);
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  if (existsSync(folder)) return folder;
  const made = `${folder}.${process.pid}`;
  console.log(`making a ${name} machine (${suite}), once`);
  try {
    const include = packages.length > 0 ? [`--include=${packages.join(',')}`] : [];
    const { status, stdout } = spawnSync('debootstrap', ['--variant=minbase', ...include, suite, made, mirror()], { encoding: 'utf8' }); // oxfmt-ignore
    if (status !== 0)
      throw new Skipped(`debootstrap failed, it needs Debian's packages: ${stdout.trim().split('\n').at(-1)}`);
    for (const path of ['/etc/resolv.conf', '/etc/hosts', '/etc/ssl/certs', '/usr/local/share/ca-certificates'])
      if (existsSync(path)) {
        mkdirSync(join(made, dirname(path)), { recursive: true });
        run('cp', ['-rL', '--remove-destination', path, join(made, dirname(path))]);
      }
    const acquire = output('apt-config', ['dump', 'Acquire'])
      .split('\n')
      .filter((line) => /^Acquire::/.test(line));
    writeFileSync(join(made, 'etc/apt/apt.conf.d/99machine'), `${acquire.join('\n')}\n`);
    finish(made);
    renameSync(made, folder);
    return folder;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function mirror() {
  const sites = output('apt-get', ['indextargets', '--format', '$(SITE)', 'Created-By: Packages']).split('\n');
  return sites.find((site) => /debian\/?$/.test(site)) ?? 'http://deb.debian.org/debian';
}

/** Finds a program of this machine in `PATH`, without the kit's packages. Throws `Skipped` if it is missing. */
function ofMachine(name) {
  const places = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((place) => place !== '' && !place.includes('node_modules'));
  const found = places.map((place) => join(place, name)).find((path) => existsSync(path));
  if (!found) throw new Skipped(`no ${name} is installed on this machine`);
  return realpathSync(found);
}

export function run(program, args) {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
}

export function output(program, args) {
  return (spawnSync(program, args, { encoding: 'utf8' }).stdout ?? '').trim();
}
