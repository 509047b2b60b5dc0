import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { pino, type DestinationStream } from 'pino';

/** Bytes of lines that wait for the reader of a pipe. */
const defaultMaxWaitingBytes = 4 * 2 ** 20;
const flushWithinMs = 1_000;

/** Destination of a process's log. */
export interface LogOutput extends DestinationStream {
  /** Number of lines that were dropped because nobody read the pipe. */
  readonly droppedLines: number;
  /** Resolves when the lines are written, or after a second. */
  flush(): Promise<void>;
}

/**
 * The log on a file descriptor (default: stderr). A pipe whose reader stalls never stops the process: lines wait in a bounded buffer, and further lines are dropped and
 * counted. A line says how many when the reader is back. Files and terminals are written at once.
 */
export function logOutput({ fd = 2, maxWaitingBytes = defaultMaxWaitingBytes } = {}): LogOutput {
  const kind = fstatSync(fd);
  if (!kind.isFIFO() && !kind.isSocket()) {
    const file = pino.destination({ dest: fd, sync: true });
    return { write: (line) => void file.write(line), droppedLines: 0, flush: async () => {} };
  }
  // Two streams on one pipe would disturb each other, so stderr has Node's own stream.
  const pipe = fd === 2 ? process.stderr : new Socket({ fd, readable: false, writable: true });
  // If the reader has gone, the lines are lost.
  pipe.on('error', () => {});
  let droppedLines = 0;
  let untold = 0;
  return {
    write(line) {
      if (pipe.writableLength > maxWaitingBytes || pipe.destroyed) {
        droppedLines += 1;
        untold += 1;
        return;
      }
      if (untold > 0)
        pipe.write(
          `${JSON.stringify({ level: 40, time: Date.now(), droppedLines: untold, msg: 'log lines were dropped because nobody read them' })}\n`,
        );
      untold = 0;
      pipe.write(line);
    },
    get droppedLines() {
      return droppedLines;
    },
    flush() {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (pipe.writableLength === 0 || pipe.destroyed) resolve();
      else {
        pipe.write('', () => resolve());
        setTimeout(resolve, flushWithinMs).unref();
      }
      return promise;
    },
  };
}
