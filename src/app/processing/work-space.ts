import { folderBytes } from '../../files/index.ts';
import { abortableSleep } from '../../platform-client/index.ts';

/** The folder that the runs of one machine work in, and what they may hold there together. */
export interface WorkSpace {
  /** Bytes that are still free; zero or less where it is full. */
  left(): Promise<number>;
  /** Resolves when there is room; other runs leave it as their outputs are uploaded. Rejects with the signal's reason. */
  waitForRoom(signal: AbortSignal, onFull: () => void): Promise<void>;
}

const lookAgainMs = 2_000;

export function createWorkSpace({ folder, quotaBytes }: { folder: string; quotaBytes: number }): WorkSpace {
  const left = async () => quotaBytes - (await folderBytes(folder));
  return {
    left,
    async waitForRoom(signal, onFull) {
      while ((await left()) <= 0) {
        onFull();
        await abortableSleep(lookAgainMs, signal);
      }
    },
  };
}
