/** A child that a file has taken over misuses what it shares with its host: the channel, its folder, its descriptors. The host goes on. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ChildPool, establishConfinement, runInChild } from '../../src/child/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { confined, fileNeeds } from '../support/needs.ts';

fileNeeds(await confined());

const module = new URL('../support/rogue-job.ts', import.meta.url);

async function alone(deed: string, more: object = {}): Promise<unknown> {
  return runInChild({
    module,
    input: { deed, ...more },
    workFolder: join(await testFolder(), 'work'),
    confinement: await testConfinement('required'),
  });
}

describe('the channel', () => {
  test.each(['sends null', 'sends garbage', 'sends another answer'])(
    'a child that %s is ended, and the host lives',
    async (deed) => {
      await expect(alone(deed)).rejects.toMatchObject({ code: 'job_crashed' });
    },
  );

  test('a message without an end is cut, and the host does not keep it', async () => {
    const before = process.memoryUsage().rss;
    await expect(alone('sends a gigabyte')).rejects.toMatchObject({
      code: 'job_crashed',
      message: expect.stringContaining('too long') as string,
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(400e6);
  });
});

describe('the folder', () => {
  test.each(['makes a folder without a bottom', 'locks a folder'])(
    'a child of a pool that %s: its folder is removed all the same, and the next job is done',
    async (deed) => {
      const folder = await testFolder();
      const pool = new ChildPool({ confinement: await testConfinement('required'), folder });
      cleanUpLater(() => pool.close());
      expect(await pool.run({ module, input: { deed }, owner: 'a' })).toMatch(/made|locked/);
      expect(await pool.run({ module, input: { deed: 'lists descriptors' }, owner: 'a' })).toEqual([]);
      await pool.close();
      expect(await readdir(folder)).toEqual([]);
    },
  );
});

test('a process whose code has failed unexpectedly runs no further job; one that refused its input does', async () => {
  const pool = new ChildPool({ confinement: await testConfinement('required'), folder: await testFolder() });
  cleanUpLater(() => pool.close());
  const run = (deed: string) => pool.run({ module, input: { deed }, owner: 'a' });
  expect(await run('counts its jobs')).toBe(1);
  await expect(run('refuses its input')).rejects.toMatchObject({ code: 'no_good' });
  expect(await run('counts its jobs')).toBe(3);
  await expect(run('has a defect')).rejects.toThrow('x is not a function');
  expect(await run('counts its jobs')).toBe(1);
});

test('descriptors that whoever started the server has left open do not reach a child', async () => {
  const secret = join(await testFolder(), 'secret');
  await writeFile(secret, 'secret');
  const script = `import { establishConfinement, runInChild } from '${projectRoot}src/child/index.ts';
    const confinement = await establishConfinement({ mode: 'required', warn() {} });
    console.log(JSON.stringify(await runInChild({ module: new URL('${module.href}'), input: { deed: 'lists descriptors' }, workFolder: process.argv[1], confinement })));`;
  const started = spawnSync(
    'bash',
    [
      '-c',
      `exec 200<"$1" 201>>"$1.log"; exec "$2" --input-type=module -e "$3" "$4"`,
      'bash',
      secret,
      process.execPath,
      script,
      join(await testFolder(), 'work'),
    ],
    { encoding: 'utf8' },
  );
  expect([started.stdout.trim(), started.stderr]).toEqual(['[]', '']);
});

test('what is hidden from a child is no place to write to either', async () => {
  // A data folder that lies below what a child reads.
  const data = join(projectRoot, 'test', 'support', `data-of-a-test-${process.pid}`);
  await mkdir(data);
  cleanUpLater(() => void execFileSync('rm', ['-rf', data]));
  const confinement = await establishConfinement({ mode: 'required', hidden: [data], warn: () => {} });
  const pool = new ChildPool({ confinement, folder: join(data, 'work') });
  cleanUpLater(() => pool.close());
  await expect(
    pool.run({ module, input: { deed: 'writes where it may not', target: join(data, 'x') }, owner: 'a' }),
  ).rejects.toThrow(/EROFS|ENOENT/);
  // And what a pool lends from there is found.
  const lent = join(data, 'lent.txt');
  await writeFile(lent, 'x');
  expect(
    await pool.run({
      module: new URL('../support/sees-file-job.ts', import.meta.url),
      input: null,
      owner: 'a',
      files: [{ path: lent, name: 'lent.txt' }],
    }),
  ).toBe('x');
  await expect(stat(join(data, 'x'))).rejects.toThrow();
});

test('threads count too', async () => {
  await expect(alone('threads')).rejects.toMatchObject({ code: 'job_processes_exceeded' });
});
