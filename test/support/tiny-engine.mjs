#!/usr/bin/env node
/** A container engine for tests: the part of Docker's command line that the app uses, done by bubblewrap with this machine's programs as the image. */
import { spawn } from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = import.meta.dirname;
const [verb, ...args] = process.argv.slice(2);
appendFileSync(join(folder, 'calls.jsonl'), `${JSON.stringify(process.argv.slice(2))}\n`);
const pidFile = (name) => join(folder, `${name}.pid`);

appendFileSync(join(folder, 'environment'), `${Object.keys(process.env).join('\n')}\n`);

if (verb === 'image') {
  const known = args[1] === 'marketplace-app-kit-test:1';
  if (!known) console.error(`Error: no such image: ${args[1]}`);
  process.exit(known ? 0 : 1);
} else if (verb === 'ps') {
  for (const name of readdirSync(folder)) if (name.endsWith('.pid')) console.log('abcdef012345');
} else if (verb === 'kill' || verb === 'rm') {
  const name = args.at(-1);
  try {
    // The group: bubblewrap, killed as it begins, leaves its second process.
    process.kill(-Number(readFileSync(pidFile(name), 'utf8')), 'SIGKILL');
  } catch {
    // It has ended.
  }
} else if (verb === 'run') {
  const flags = new Set(['--rm', '--read-only']);
  const values = {};
  let at = 0;
  for (; args[at]?.startsWith('--'); at++) if (!flags.has(args[at])) (values[args[at]] ??= []).push(args[++at]);
  const program = [values['--entrypoint'][0], ...args.slice(at + 1)];
  const binds = values['--volume'].flatMap((one) => {
    const [from, to, mode] = one.split(':');
    return [mode === 'ro' ? '--ro-bind' : '--bind', from, to];
  });
  const [uid, gid] = values['--user'][0].split(':');
  const asUser =
    process.getuid() === 0
      ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs', '--']
      : [];
  const links = ['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const system = ['--ro-bind', '/usr', '/usr', ...links, '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'];
  const alone = ['--unshare-net', '--unshare-pid', '--unshare-ipc', '--die-with-parent', '--remount-ro', '/'];
  const bare = ['--clearenv', '--setenv', 'PATH', '/usr/bin', '--chdir', values['--workdir'][0]];
  const child = spawn('bwrap', [...system, ...binds, ...alone, ...bare, ...asUser, ...program], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  writeFileSync(pidFile(values['--name'][0]), String(child.pid));
  child.on('close', (code) => {
    rmSync(pidFile(values['--name'][0]), { force: true });
    process.exit(code ?? 137);
  });
}
