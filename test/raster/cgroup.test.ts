// @module-tag all
/** Control groups, against folders that are made like those of the kernel. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { delegatedGroups } from '../../src/child/cgroup.ts';
import { testFolder } from '../support/folders.ts';

/** A unit with the server in a leaf of it. */
async function unit({ controllers = 'cpu memory pids', procs = '', subtree = '', own = '/unit/server' } = {}) {
  const mount = await testFolder();
  await mkdir(join(mount, 'unit', 'server'), { recursive: true });
  const files = { 'cgroup.controllers': controllers, 'cgroup.procs': procs, 'cgroup.subtree_control': subtree };
  for (const [name, text] of Object.entries(files)) await writeFile(join(mount, 'unit', name), `${text}\n`);
  await writeFile(join(mount, 'self'), `1:name=systemd:/x\n0::${own}\n`);
  return { parent: join(mount, 'unit'), groups: delegatedGroups(mount, join(mount, 'self')) };
}
const groupsIn = async (parent: string) =>
  (await readdir(parent)).filter((name) => name.startsWith('marketplace-app-kit-'));
const limits = { memoryBytes: 250e6, tasks: 99 };

test('delegated: a group for each child, with its limits, and the child in it', async () => {
  const { parent, groups } = await unit({ subtree: 'pids' });
  expect(await readFile(join(parent, 'cgroup.subtree_control'), 'utf8')).toBe('+memory');
  const group = groups!(limits)!;
  group.add(4711);
  const [name] = await groupsIn(parent);
  const read = (file: string) => readFile(join(parent, name!, file), 'utf8');
  expect([
    await read('memory.max'),
    await read('memory.swap.max'),
    await read('memory.oom.group'),
    await read('pids.max'),
    await read('cgroup.procs'),
  ]).toEqual(['250000000', '0', '1', '99', '4711']);
  expect(group.ranOutOfMemory()).toBe(false);
  await writeFile(join(parent, name!, 'memory.events'), 'low 0\noom 1\noom_kill 2\n');
  expect(group.ranOutOfMemory()).toBe(true);
});

test.each([
  ['no controller of memory', { controllers: 'cpu pids' }],
  ['other processes in the parent', { procs: '1\n2' }],
  ['the server at the root', { own: '/' }],
])('not delegated (%s): none, and nothing is made', async (_why, options) => {
  const { parent, groups } = await unit(options);
  expect([groups, await groupsIn(parent)]).toEqual([null, []]);
});

test('no version 2 at all: none', () => expect(delegatedGroups('/nowhere', '/nowhere/self')).toBe(null));

test('a group that cannot be made is none, and the child is watched like any other', async () => {
  const { parent, groups } = await unit();
  await (await import('node:fs/promises')).rm(parent, { recursive: true });
  expect(groups!(limits)).toBe(null);
});
