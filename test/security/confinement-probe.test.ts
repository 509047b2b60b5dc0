/** The first child of a server proves its confinement; limits that the server inherits. */
import { chmod, writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { establishConfinement } from '../../src/child/index.ts';
import { findProgram } from '../../scripts/needs.mjs';
import { projectRoot, testFolder } from '../support/folders.ts';
import { confined, fileNeeds } from '../support/needs.ts';

fileNeeds(await confined());

/** Search path with a bubblewrap that adds these arguments to the mounts of each child. */
async function pathWith(...more: readonly string[]): Promise<string> {
  const folder = await testFolder();
  const program = join(folder, 'bwrap');
  await writeFile(
    program,
    `#!/bin/bash
given=()
for one in "$@"; do
  if [ "$one" = -- ] && [ -z "$done" ]; then given+=(${more.join(' ')}); done=yes; fi
  given+=("$one")
done
exec '${findProgram(['bwrap'])}' "\${given[@]}"
`,
  );
  await chmod(program, 0o755);
  return folder + delimiter + process.env['PATH'];
}

const establish = (path: string) => establishConfinement({ mode: 'required', warn: () => {}, path });

/** A folder that exists on every Debian, and that no job needs. */
const place = '/usr/share/doc';

test('a confinement in which a folder is writable is not used', { timeout: 120_000 }, async () => {
  const path = await pathWith('--perms', '1777', '--tmpfs', place);
  await expect(establish(path)).rejects.toThrow(`a child process could write outside its folder: ${place}`);
});

test('nor one in which a file of /proc is writable', { timeout: 120_000 }, async () => {
  const file = join(await testFolder(), 'file');
  await writeFile(file, '');
  await chmod(file, 0o666);
  const path = await pathWith('--bind', file, '/proc/version');
  await expect(establish(path)).rejects.toThrow('a child process could write outside its folder: /proc/version');
});

test('each obstacle has its own remedy', { timeout: 120_000 }, async () => {
  const withoutBubblewrap = await testFolder();
  await expect(establish(withoutBubblewrap)).rejects.toThrow(
    /not installed\n.*Install it \(apt-get install bubblewrap\)/,
  );
  const broken = join(withoutBubblewrap, 'bwrap');
  await writeFile(broken, '#!/bin/sh\necho "No permissions to create new namespace" >&2; exit 1\n', { mode: 0o755 });
  const message = await establish(withoutBubblewrap + delimiter + process.env['PATH']).catch(String);
  expect(message).toMatch(/No permissions to create new namespace\n.*Let it make user namespaces: docs\/deploy\.md/);
  expect(message).not.toContain('Install it');
  const writable = await establish(await pathWith('--perms', '1777', '--tmpfs', place)).catch(String);
  expect(writable).toContain('Mount these places read-only');
});

test('control: with a read-only folder at the same place it is used', { timeout: 120_000 }, async () => {
  expect((await establish(await pathWith('--ro-bind', '/etc', place))).kind).toBe('bubblewrap');
});

test('a server with few open files confines its children, and raises no limit', () => {
  const program = `
  import { establishConfinement } from ${JSON.stringify(new URL('../../src/child/index.ts', import.meta.url).href)};
  console.log((await establishConfinement({ mode: 'required', warn() {} })).summary);`;
  const node = [process.execPath, '--import', './scripts/preload.mjs', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync('prlimit', ['--nofile=256:256', ...node], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  expect(stdout, stderr).toMatch(/^bubblewrap/);
});
