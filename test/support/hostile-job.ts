/** A child that a file has taken over, and that goes on after its answer. Each deed can be tried unconfined as well: then it does harm. */
import { spawn } from 'node:child_process';
import { createWriteStream, linkSync, mkdirSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/child/in-child.ts';

const channel = 3;
const filesInFolder = 400;

/** Waits until the first file of `d` is unlinked, then puts a link to the victim where `d` was. */
const swapper = `
const fs = require('node:fs');
while (fs.existsSync('d/f0')) {}
fs.renameSync('d', 'e');
fs.symlinkSync(process.argv[1], 'd');
`;

/** A folder of many files, and a process that swaps it for a link to `victim` while somebody empties it. */
export function layTrap(folder: string, victim: string): void {
  mkdirSync(join(folder, 'd'));
  for (let i = 0; i < filesInFolder; i++) writeFileSync(join(folder, 'd', `f${i}`), '');
  spawn(process.execPath, ['-e', swapper, victim], { cwd: folder, stdio: 'ignore', detached: true }).unref();
}

function write(bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(channel, bytes, at, bytes.length - at);
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
    }
  }
}

const endless = () => sleep(60_000);

/** By what they do. Some never end by themselves. */
export const deeds: Readonly<Record<string, (workFolder: string, victim: string) => unknown>> = {
  'swaps a folder for a link': (folder, victim) => layTrap(folder, victim),
  'sends a result of ten megabytes': () =>
    write(Buffer.from(`:{"type":"done","output":[${'[],'.repeat(3_300_000)}0]}\n`)),
  'sends a million small messages': async () => {
    const many = Buffer.from(':{"type":"progress","fraction":0.5,"note":null}\n'.repeat(1_000));
    for (let i = 0; i < 1_000; i++) write(many);
    await endless();
  },
  'sends bytes that it did not announce a place for': async () => {
    write(Buffer.from(`${'9'.repeat(5_000)}:{"type":"done","output":1}\n`));
    await endless();
  },
  'prints a gigabyte': async () => {
    const stream = createWriteStream('', { fd: 2 });
    const line = Buffer.alloc(1 << 20, 'x\n');
    for (let i = 0; i < 1_024; i++) await new Promise((resolve) => stream.write(line, resolve));
  },
  'hides bytes below a path that is too long': async (folder) => {
    process.chdir(folder);
    for (let i = 0; i < 30; i++) {
      mkdirSync('x'.repeat(200));
      process.chdir('x'.repeat(200));
    }
    for (let i = 0; i < 30; i++) writeFileSync(`f${i}`, Buffer.alloc(4 << 20));
    await endless();
  },
  'makes a hundred thousand empty files': async (folder) => {
    for (let i = 0; i < 100_000; i++) writeFileSync(join(folder, `f${i}`), '');
    await endless();
  },
  'leaves a link as its output': (folder, victim) => symlinkSync(victim, join(folder, 'output')),
  'leaves a hard link as its output': (folder) => {
    writeFileSync(join(folder, 'other'), 'x');
    linkSync(join(folder, 'other'), join(folder, 'output'));
  },
  'leaves a folder as its output': (folder) => mkdirSync(join(folder, 'output')),
  'leaves a file that goes on growing': (folder) => {
    writeFileSync(join(folder, 'output'), 'as it was checked');
    spawn('sh', ['-c', 'while :; do printf more >> output; done'], {
      cwd: folder,
      stdio: 'ignore',
      detached: true,
    }).unref();
  },
  'leaves processes that go on': (folder) => {
    for (let i = 0; i < 3; i++)
      spawn('sh', ['-c', 'while :; do :; done', folder], { stdio: 'ignore', detached: true }).unref();
  },
  'leaves processes that go on, and crashes': (folder, victim) => {
    void deeds['leaves processes that go on']!(folder, victim);
    process.kill(process.pid, 'SIGKILL');
  },
  'is honest': (folder) => writeFileSync(join(folder, 'output'), 'honest'),
};

const job: Job<{ deed: string; victim: string }, unknown> = async ({ deed, victim }, { workFolder }) => {
  await deeds[deed]!(workFolder, victim);
  return process.pid;
};
export default job;
