import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** A disk of its own for one folder, which can be filled. */
export interface SmallDisk {
  fill(): Promise<void>;
  empty(): Promise<void>;
  remove(): void;
}

const fillBytes = 1024 * 1024;

/** Null where this machine does not let us mount one: then nothing of the kind can be tried here. */
export function mountSmallDisk(folder: string, megabytes: number): SmallDisk | null {
  mkdirSync(folder, { recursive: true });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'drill', folder], {
    stdio: 'ignore',
  });
  if (mounted.status !== 0) return null;
  const unmount = () => void spawnSync('umount', ['-l', folder], { stdio: 'ignore' });
  process.once('exit', unmount);
  const filler = join(folder, 'filler');
  return {
    async fill() {
      const file = await open(filler, 'a');
      try {
        // To the last byte, in ever smaller pieces.
        for (let size = fillBytes; size >= 1;) {
          const isFull = await file.write(Buffer.alloc(size)).then(
            ({ bytesWritten }) => bytesWritten < size,
            () => true,
          );
          if (isFull) size = Math.floor(size / 4);
        }
      } finally {
        await file.close();
      }
    },
    empty: () => rm(filler, { force: true }),
    remove() {
      process.removeListener('exit', unmount);
      unmount();
    },
  };
}
