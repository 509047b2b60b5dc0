/** Deeds of a child that a file has taken over. It computes wrong results, and misuses the things that it shares with its host. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../src/contract/kit-error.ts';
import type { Job } from '../../src/child/in-child.ts';

const channel = 3;
/** Number of jobs that this process has run with one of the deeds that count. */
let jobs = 0;

function writeAll(bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(channel, bytes, at, Math.min(bytes.length - at, 1 << 20));
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error;
    }
  }
}

const deeds: Readonly<Record<string, (workFolder: string, target: string) => unknown>> = {
  'sends null': () => writeAll(Buffer.from('null\n')),
  'sends garbage': () => writeAll(Buffer.from('\u0000{]\n')),
  'sends another answer': () =>
    writeAll(Buffer.from(`${JSON.stringify({ type: 'failed', code: '<script>', message: 5 })}\n`)),
  'sends a gigabyte': () => {
    for (let i = 0; i < 1024; i++) writeAll(Buffer.alloc(1 << 20, 97));
  },
  'makes a folder without a bottom': (workFolder) => {
    process.chdir(workFolder);
    for (let i = 0; i < 60; i++) {
      mkdirSync('x'.repeat(200));
      process.chdir('x'.repeat(200));
    }
    return 'made';
  },
  'locks a folder': (workFolder) => {
    mkdirSync(`${workFolder}/locked/inner`, { recursive: true });
    chmodSync(`${workFolder}/locked`, 0);
    return 'locked';
  },
  'lists descriptors': () =>
    ['self', '1']
      .flatMap((pid) => {
        try {
          return readdirSync(`/proc/${pid}/fd`).map((fd) => {
            try {
              return readlinkSync(`/proc/${pid}/fd/${fd}`);
            } catch {
              return '';
            }
          });
        } catch {
          return [];
        }
      })
      .filter((link) => link.startsWith('/') && !link.startsWith('/dev/') && !link.startsWith('/proc/')),
  'writes where it may not': (_workFolder, target) => {
    writeFileSync(target, 'written');
    return readFileSync(target, 'utf8');
  },
  'counts its jobs': () => (jobs += 1),
  'has a defect': () => {
    jobs += 1;
    throw new TypeError('x is not a function');
  },
  'refuses its input': () => {
    jobs += 1;
    throw new KitError('no_good', 'the input is no good', { status: 422 });
  },
  // If root does not run the tests, the kernel refuses some threads. The others stay.
  threads: async () => {
    execFileSync(
      '/usr/bin/python3',
      [
        '-c',
        'import threading, time\nthreading.stack_size(65536)\ntry:\n  for _ in range(3000): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\nexcept RuntimeError: pass\ntime.sleep(5)',
      ],
      { stdio: 'ignore' },
    );
    return 'run';
  },
};

const job: Job<{ deed: string; target?: string }, unknown> = async ({ deed, target = '' }, { workFolder }) => {
  const result = await deeds[deed]!(workFolder, target);
  if (result === undefined) await sleep(5_000);
  return result;
};
export default job;
