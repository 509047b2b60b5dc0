/**
 * Entry of every child process: runs jobs for its host, one after the other. With the argument `compile`, it loads the modules
 * that the other arguments name, writes Node's compile cache, and exits.
 */
import { chmodSync, readdirSync } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { isRecord } from '../files/index.ts';
import { Channel, channelDescriptor } from './channel.ts';
import { describedError } from './described-error.ts';
import { Defect, kindOfPlainError } from './failure-kind.ts';
import type { FromChild, Job, ToChild } from './protocol.ts';

const progressEveryMs = 100;
let abort = new AbortController();
let isBusy = false;

/** Reports an uncaught error or an unhandled rejection. The process ends afterwards, because its state is unknown. */
process.on('uncaughtException', (error: unknown) => {
  console.error(error);
  if (!isBusy) process.exit(1);
  const thrown = error instanceof Error ? error : new Error(String(error));
  // The job could not catch this error, so a plain error does not mean a damaged input.
  const mistake = kindOfPlainError(thrown) === 'input' ? new Defect(thrown) : thrown;
  void send({ type: 'failed', ...describedError(mistake) }).then(() => process.exit(1));
});

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

// Node has the kernel fail a write beyond the limit to one file. A library may take no notice of that, or crash over it, so
// the kernel ends the process in its place: without a listener a signal does what it does by default.
const noListener = () => {};
process.on('SIGXFSZ', noListener).off('SIGXFSZ', noListener);

let asked = 0;
const waiting = new Map<number, (answer: unknown) => void>();

function ask(question: unknown): Promise<unknown> {
  const id = asked++;
  return new Promise((resolve, reject) => {
    const { signal } = abort;
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    waiting.set(id, (answer) => {
      signal.removeEventListener('abort', onAbort);
      resolve(answer);
    });
    void send({ type: 'ask', id, question });
  });
}

async function start({ module, input, files, workFolder }: Extract<ToChild, { type: 'start' }>): Promise<FromChild> {
  abort = new AbortController();
  isBusy = true;
  try {
    // The module of a job exports one.
    const { default: job } = (await import(module)) as { default: Job<unknown, unknown> };
    return {
      type: 'done',
      output: await job(input, { signal: abort.signal, progress: throttledProgress(), files, workFolder, ask }),
    };
  } catch (error) {
    return { type: 'failed', ...describedError(error) };
  } finally {
    isBusy = false;
  }
}

/** Answers of jobs are plain data. */
const send = (message: FromChild) => channel.send(message);

function receive(message: ToChild): void {
  if (message.type === 'cancel') abort.abort(new Error(message.reason));
  else if (message.type === 'end') process.exit(0);
  else if (message.type === 'answer') {
    waiting.get(message.id)?.(message.answer);
    waiting.delete(message.id);
  } else void start(message).then(send);
}

async function compile(modules: readonly string[]): Promise<never> {
  // A job that needs a missing module reports the error itself.
  for (const module of [new URL('./digest-worker.ts', import.meta.url).href, ...modules])
    await import(module).then(importWork).catch(() => {});
  flushCompileCache();
  makeCacheReadable();
  process.exit(0);
}

/** Imports the work modules of an app's steps. The app itself imports none of them, and a child only that of the step it runs. */
async function importWork({ default: app }: { readonly default?: unknown }): Promise<void> {
  const steps: unknown[] = isRecord(app) && Array.isArray(app['steps']) ? app['steps'] : [];
  for (const step of steps)
    if (isRecord(step) && typeof step['work'] === 'function') await (step['work'] as () => Promise<unknown>)();
}

/** Node makes the files of the cache for its own user alone, and confined children may run as others. They hold no secret. */
function makeCacheReadable(): void {
  const folder = getCompileCacheDir();
  if (folder === undefined) return;
  chmodSync(folder, 0o755);
  for (const name of readdirSync(folder)) {
    try {
      chmodSync(join(folder, name), 0o644);
    } catch {
      // Another process has replaced it, or owns it.
    }
  }
}

const [task, ...modules] = process.argv.slice(2);
if (task === 'compile') await compile(modules);

// If the host is gone, nobody needs the result.
const channel = new Channel(
  new Socket({ fd: channelDescriptor }),
  // The host is the other end, which sends nothing else.
  (message) => receive(message as ToChild),
  () => process.exit(1),
);
void send({ type: 'ready' });
