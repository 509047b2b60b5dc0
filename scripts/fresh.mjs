// `npm run test:fresh`: plays the README's two commands on a bare machine, as root and as another user. The machine is a root
// folder that debootstrap makes: Debian's smallest set of packages, git, certificates, and this machine's Node and npm.
// `--part` (in `npm run test:all`) runs the demo and the tests that need further programs, with the GDAL binding that this
// clone has built; a machine that an earlier run has set up serves it again while everything that the set-up reads is as it
// was. Plain JavaScript: it runs on the machine's own Node.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareRoot, output, run, Skipped } from './bare-machine.mjs';

const kit = dirname(dirname(fileURLToPath(import.meta.url)));
const isPart = process.argv.includes('--part');
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'marketplace-app-kit', 'fresh');
const user = 'somebody';
/** Tests whose needs the set-up of `npm test` provides. */
const partOfTests = ['test/steps/command.test.ts'];

function play() {
  const root = join(cache, `machine-${process.pid}`);
  const commit = output('git', ['-C', kit, 'rev-parse', 'HEAD']);
  if (output('git', ['-C', kit, 'status', '--porcelain']) !== '')
    console.log('test:fresh plays the last commit; what is not committed is not in it');
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  writeFileSync(join(cache, 'last.log'), '');
  const bare = bareRoot(cache, user);
  const setUp = join(cache, `set-up-${keyOfSetUp()}`);
  const isSetUp = isPart && existsSync(setUp);
  console.log(
    `test:fresh: commit ${commit.slice(0, 7)}, on a machine ${isSetUp ? 'that an earlier run has set up' : 'that is bare'}`,
  );
  try {
    // Without the copy's own file system a failure would leave a half-changed machine behind.
    run('cp', ['-a', '--reflink=auto', isSetUp ? setUp : bare, root]);
    const steps = isPart ? part(root, setUp, isSetUp) : whole(root);
    const failed = steps.filter(({ passed }) => !passed);
    console.log(`${steps.length - failed.length} passed, ${failed.length} failed`);
    return failed.length === 0;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function whole(root) {
  clone(root, `home/${user}/kit`);
  clone(root, 'root/kit');
  return [
    // Bare, and without the right to install anything: it says what to type.
    step(
      root,
      user,
      'npm run demo',
      (status, text) => status === 1 && /sudo apt-get .*install.*libgdal-dev/.test(text),
    ),
    step(root, 'root', 'npm run demo', isDelivered),
    step(root, 'root', 'npm test', isGreen),
    step(root, user, 'npm run demo', isDelivered),
    step(root, user, 'npm test', isGreen),
  ];
}

function part(root, setUp, isSetUp) {
  clone(root, 'root/kit');
  const kept = join(root, 'root', 'node_modules');
  if (isSetUp) renameSync(kept, join(root, 'root/kit/node_modules'));
  else bringBinding(join(root, 'root/kit'));
  const steps = [
    step(root, 'root', 'npm run demo', isDelivered),
    step(root, 'root', `npm test -- ${partOfTests.join(' ')}`, isGreen),
  ];
  if (!isSetUp && steps.every(({ passed }) => passed)) {
    renameSync(join(root, 'root/kit/node_modules'), kept);
    rmSync(join(root, 'root/kit'), { recursive: true });
    rmSync(setUp, { recursive: true, force: true });
    run('cp', ['-a', '--reflink=auto', root, setUp]);
  }
  return steps;
}

/** Spares the build. `npm ci` keeps the binding, and the set-up builds where it does not load. */
function bringBinding(clone) {
  const folder = 'node_modules/gdal-async';
  if (!existsSync(join(kit, folder, 'lib/binding'))) return;
  mkdirSync(join(clone, folder, 'lib'), { recursive: true });
  for (const path of ['package.json', 'lib/binding'])
    cpSync(join(kit, folder, path), join(clone, folder, path), { recursive: true });
}

const isDelivered = (status, text) => status === 0 && /^sha256 fetched +[0-9a-f]{64} +equal/m.test(text);
const isGreen = (status, text) => status === 0 && /^\d+ passed, 0 failed$/m.test(text);

/** One command in the machine, in the clone of this user. */
function step(root, as, command, isRight) {
  const began = Date.now();
  const home = as === 'root' ? '/root' : `/home/${as}`;
  // Nothing of this machine's environment but the way to the registries.
  const way = Object.entries(process.env).filter(([name]) =>
    /^(.*_proxy|SSL_CERT_FILE|NODE_EXTRA_CA_CERTS)$/i.test(name),
  );
  const settings = Object.entries({ ...Object.fromEntries(way), HOME: home, USER: as, LANG: 'C.UTF-8', TERM: 'dumb', PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }); // oxfmt-ignore
  const inside = ['setpriv', ...(as === 'root' ? [] : [`--reuid=${as}`, `--regid=${as}`, '--init-groups']), 'env', '-i', ...settings.map(([name, value]) => `${name}=${value}`), 'sh', '-c', `cd ${home}/kit && ${command}`]; // oxfmt-ignore
  const { status, stdout } = spawnSync('unshare', ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', 'sh', '-c', enter, 'enter', root, ...inside], { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 }); // oxfmt-ignore
  const passed = isRight(status, stdout ?? '');
  const log = join(cache, 'last.log');
  appendFileSync(log, `\n=== ${as}: ${command}: exit ${status}\n${stdout}`);
  console.log(
    `${passed ? 'passed' : 'FAILED'}  ${((Date.now() - began) / 1_000).toFixed(0).padStart(4)} s  ${as}: ${command}`,
  );
  const told = (stdout ?? '').trimEnd().split('\n');
  // The closing table of the tests, or the set-up's advice.
  if (passed)
    told
      .filter((line) => /^\d+ passed, \d+ failed$|^ +sudo apt-get|^ +\d+ {2}\S|^ +to run them/.test(line))
      .forEach((line) => console.log(`        ${line.trim()}`));
  else console.log(`${told.slice(-80).join('\n')}\n(the whole of it: ${log})`);
  return { passed };
}

/** Makes `$1` the root folder of a process with its own /proc, then runs the rest. Not by chroot: bubblewrap does not work in one. */
const enter = `
set -e
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mkdir -p old proc dev sys tmp
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
pivot_root . old
exec chroot . sh -c 'umount -l /old; exec "$@" 2>&1' inside "$@"
`;

function clone(root, folder) {
  const target = join(root, folder);
  run('git', ['clone', '--quiet', '--no-hardlinks', `file://${kit}`, target]);
  if (folder.startsWith('home')) run('chroot', [root, 'chown', '-R', `${user}:${user}`, `/home/${user}`]);
}

/** Changes with everything that the set-up reads. */
function keyOfSetUp() {
  const read = ['package-lock.json', 'package.json', 'scripts/setup.mjs', 'scripts/needs.mjs', 'src/needs.json'];
  const hash = createHash('sha256');
  for (const path of read) hash.update(readFileSync(join(kit, path)));
  return hash.digest('hex').slice(0, 16);
}

try {
  process.exitCode = play() ? 0 : 1;
} catch (error) {
  if (!(error instanceof Skipped)) throw error;
  console.log(`test:fresh skipped: ${error.message}`);
}
