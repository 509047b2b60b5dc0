/** A confined child that is hostile, and goes on after its answer: the host's files stay, and a plain call beside it is answered. */
import { execFileSync } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ChildPool, runInChild, type ChildLimits } from '../../src/child/index.ts';
import { copyPlainFile, folderBytes } from '../../src/files/index.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { layTrap } from '../support/hostile-job.ts';
import { longestOwnWorkMs } from '../support/own-work.ts';
import { processesIn } from '../support/processes.ts';
import { victimTree } from '../support/victim-tree.ts';
import { confined, fileNeeds, needing, python } from '../support/needs.ts';

fileNeeds(await confined());

const module = new URL('../support/hostile-job.ts', import.meta.url);

async function startPool(limits?: ChildLimits) {
  const folder = await testFolder();
  const pool = new ChildPool({ confinement: await testConfinement('required'), folder, limits });
  cleanUpLater(() => pool.close());
  const run = (deed: string, victim = '', collect?: (workFolder: string) => Promise<void>) =>
    pool.run<number>({ module, input: { deed, victim }, owner: 'a', ...(collect && { collect }) });
  return { pool, folder, run };
}

describe('files of the host', () => {
  test('control: whoever removes such a folder by its path loses others', async () => {
    const { folder: victim, digest, before } = await victimTree();
    for (let i = 0; i < 200 && (await digest()) === before; i++) {
      const folder = await testFolder();
      layTrap(folder, victim);
      await sleep(300);
      await rm(folder, { recursive: true, force: true }).catch(() => {});
    }
    expect(await digest()).not.toBe(before);
  });

  test('a folder that is swapped for a link while the pool empties it', async () => {
    const { folder: victim, digest, before } = await victimTree();
    const { pool, folder, run } = await startPool();
    for (let i = 0; i < 5; i++) {
      await run('swaps a folder for a link', victim);
      await run('is honest');
    }
    await pool.close();
    expect(await readdir(folder)).toEqual([]);
    expect(await digest()).toBe(before);
  });

  test.each(['leaves processes that go on', 'leaves processes that go on, and crashes'])(
    'a child that %s: they are gone before the host touches its folder',
    async (deed) => {
      for (let i = 0; i < 5; i++) {
        const { pool, folder, run } = await startPool();
        await run(deed).catch(() => {});
        await pool.close();
        expect(processesIn(folder)).toEqual([]);
        expect(await readdir(folder)).toEqual([]);
      }
    },
  );

  test.each(['leaves a link as its output', 'leaves a hard link as its output', 'leaves a folder as its output'])(
    'a child of a pool that %s',
    async (deed) => {
      const { folder: victim, digest, before } = await victimTree();
      const to = join(await testFolder(), 'taken');
      const { pool, run } = await startPool();
      const taken = run(deed, join(victim, 'f0'), (workFolder) => copyPlainFile(join(workFolder, 'output'), to));
      await expect(taken).rejects.toMatchObject({ code: 'job_output_unsafe' });
      await expect(lstat(to)).rejects.toThrow();
      await pool.close();
      expect(await digest()).toBe(before);
    },
  );

  test('a pipe where a file should be keeps nobody waiting', async () => {
    const folder = await testFolder();
    execFileSync('mkfifo', [join(folder, 'output')]);
    const taken = copyPlainFile(join(folder, 'output'), join(folder, 'taken'));
    await expect(taken).rejects.toMatchObject({ code: 'job_output_unsafe' });
  });

  test('a file that grows after the check is taken as it was', async () => {
    const to = join(await testFolder(), 'taken');
    const { run } = await startPool();
    await run('leaves a file that goes on growing', '', async (workFolder) => {
      const sizeOf = async () => (await lstat(join(workFolder, 'output'))).size;
      const before = await sizeOf();
      await copyPlainFile(join(workFolder, 'output'), to);
      const taken = (await lstat(to)).size;
      while ((await sizeOf()) <= taken) await sleep(5);
      expect(taken).toBeGreaterThanOrEqual(before);
      const bytes = await readFile(to);
      await sleep(50);
      expect(await readFile(to)).toEqual(bytes);
    });
    expect((await lstat(to)).mode & 0o777).toBe(0o600);
  });
});

describe('a plain call is answered beside a child that', () => {
  test.each([
    ['sends a result of ten megabytes', 'job_crashed', 'too long'],
    ['sends a million small messages', 'job_crashed', 'too many messages'],
    ['sends bytes that it did not announce a place for', 'job_crashed', 'something other than a message'],
    ['makes a hundred thousand empty files', 'job_disk_exceeded', 'disk'],
    ['hides bytes below a path that is too long', 'job_disk_exceeded', 'disk'],
  ])('%s', async (deed, code, message) => {
    const { run } = await startPool({ diskBytes: 50e6 });
    const before = process.memoryUsage().rss;
    const workMs = await longestOwnWorkMs(() =>
      expect(run(deed)).rejects.toMatchObject({ code, message: expect.stringContaining(message) as string }),
    );
    expect(workMs).toBeLessThan(1_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(300e6);
  });

  test('prints a gigabyte', async () => {
    const { run } = await startPool({ timeoutMs: 3_000 });
    const workMs = await longestOwnWorkMs(() => run('prints a gigabyte').catch(() => {}));
    expect(workMs).toBeLessThan(1_000);
  });
});

test('a folder that cannot be read counts as too much', async () => {
  const folder = await testFolder();
  let path = folder;
  for (let i = 0; i < 70; i++) await mkdir((path = join(path, 'd')));
  expect(await folderBytes(folder)).toBe(Infinity);
  expect(await folderBytes(join(folder, 'not-there'))).toBe(0);
});

test('system calls that lead out, or hold memory that nobody counts, are refused', needing(python), async () => {
  const script = join(projectRoot, 'test/support/syscalls.py');
  const unconfined = execFileSync('python3', [script], { encoding: 'utf8' }).trim().split('\n');
  expect(unconfined).toEqual(expect.arrayContaining(['msgget', 'semget', 'shmget', 'large pipe', 'large socket']));
  const workFolder = join(await testFolder(), 'work');
  const text = await runInChild<string>({
    module: new URL('../support/runs-python-job.ts', import.meta.url),
    input: await readFile(script, 'utf8'),
    workFolder,
    confinement: await testConfinement('required'),
  });
  expect(text.trim()).toBe('');
});

test('a machine that lacks what a process needs is no fault of the input', async () => {
  const real = await testConfinement('required');
  const failing = {
    ...real,
    command: () => [
      '/bin/sh',
      '-c',
      'echo "bwrap: Creating new namespace failed: Resource temporarily unavailable" >&2; exit 1',
    ],
  };
  const started = runInChild({ module, input: {}, workFolder: join(await testFolder(), 'work'), confinement: failing });
  await expect(started).rejects.toMatchObject({
    code: 'job_not_started',
    kind: 'transient',
    message: expect.stringContaining('Resource temporarily unavailable') as string,
  });
});
