/** Entry of every child process: runs the jobs it is given, one after the other, and reports over IPC. */
import { KitError } from '../../contract/kit-error.ts';
import { kindOfPlainError } from '../failure-kind.ts';
import type { FromChild, Job, ToChild } from './protocol.ts';

const progressEveryMs = 100;
let abort = new AbortController();

function send(message: FromChild): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected) return resolve();
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

function throttledProgress(): (fraction: number, note?: string) => void {
  let lastMs = -Infinity;
  let lastNote: string | null = null;
  return (fraction, note = undefined) => {
    const now = performance.now();
    const noteChanged = note !== undefined && note !== lastNote;
    if (now - lastMs < progressEveryMs && !noteChanged && fraction < 1) return;
    lastMs = now;
    if (note !== undefined) lastNote = note;
    void send({ type: 'progress', fraction: Math.min(1, Math.max(0, fraction)), note: lastNote });
  };
}

async function start({ module, input, files, workFolder }: Extract<ToChild, { type: 'start' }>): Promise<FromChild> {
  abort = new AbortController();
  try {
    const { default: job } = (await import(module)) as { default: Job<unknown, unknown> };
    return { type: 'done', output: await job(input, { signal: abort.signal, progress: throttledProgress(), files, workFolder }) };
  } catch (error) {
    return { type: 'failed', ...described(error) };
  }
}

const stackCharacters = 8_000;

function described(error: unknown): Omit<Extract<FromChild, { type: 'failed' }>, 'type'> {
  const stack = error instanceof Error ? (error.stack ?? error.message).slice(0, stackCharacters) : null;
  if (error instanceof KitError) return { kind: error.status < 500 ? 'user' : 'defect', code: error.code, message: error.message, data: error.data, stack };
  const message = error instanceof Error ? error.message || error.name : String(error);
  return { kind: kindOfPlainError(error), code: 'job_failed', message, data: {}, stack };
}

process.on('message', (message: ToChild) => {
  if (message.type === 'cancel') abort.abort(new Error(message.reason));
  else if (message.type === 'end') process.exit(0);
  else void start(message).then(send);
});
// The host is gone: nobody wants the result.
process.on('disconnect', () => process.exit(1));
