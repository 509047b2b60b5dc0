/** Entry of every child process: runs the jobs it is given, one after the other, and reports to its host. */
import { Socket } from 'node:net';
import { KitError } from '../../contract/kit-error.ts';
import { Channel, channelDescriptor } from './channel.ts';
import { kindOfPlainError } from '../failure-kind.ts';
import type { FromChild, Job, ToChild } from './protocol.ts';

const progressEveryMs = 100;
let abort = new AbortController();

function throttledProgress(): (fraction: number, note?: string) => void {
  let lastMs = -Infinity;
  let lastNote: string | null = null;
  return (fraction, note = undefined) => {
    const now = performance.now();
    const noteChanged = note !== undefined && note !== lastNote;
    if (now - lastMs < progressEveryMs && !noteChanged && fraction < 1) return;
    lastMs = now;
    if (note !== undefined) lastNote = note;
    void send({
      type: 'progress',
      fraction: Number.isFinite(fraction) ? Math.min(1, Math.max(0, fraction)) : 0,
      note: lastNote,
    });
  };
}

async function start({ module, input, files, workFolder }: Extract<ToChild, { type: 'start' }>): Promise<FromChild> {
  abort = new AbortController();
  try {
    const { default: job } = (await import(module)) as { default: Job<unknown, unknown> };
    return {
      type: 'done',
      output: await job(input, { signal: abort.signal, progress: throttledProgress(), files, workFolder }),
    };
  } catch (error) {
    return { type: 'failed', ...described(error) };
  }
}

const mostCharacters = 8_000;

function described(error: unknown): Omit<Extract<FromChild, { type: 'failed' }>, 'type'> {
  const stack = error instanceof Error ? (error.stack ?? error.message).slice(0, mostCharacters) : null;
  if (error instanceof KitError)
    return {
      kind: error.status < 500 ? 'user' : 'defect',
      code: error.code,
      message: error.message.slice(0, mostCharacters),
      data: error.data,
      stack,
    };
  const message = error instanceof Error ? error.message || error.name : String(error);
  return {
    kind: kindOfPlainError(error),
    code: 'job_failed',
    message: message.slice(0, mostCharacters),
    data: {},
    stack,
  };
}

/** Answers of jobs are plain data. */
const send = (message: FromChild) => channel.send(message);

function receive(message: ToChild): void {
  if (message.type === 'cancel') abort.abort(new Error(message.reason));
  else if (message.type === 'end') process.exit(0);
  else void start(message).then(send);
}

// The host is gone: nobody wants the result.
const channel = new Channel(
  new Socket({ fd: channelDescriptor }),
  (message) => receive(message as ToChild),
  () => process.exit(1),
);
