import * as z from 'zod';
import type { ChannelLimits } from './channel.ts';
import { plainText } from './plain-text.ts';

/** Host to child. */
export type ToChild =
  | { type: 'start'; module: string; input: unknown; files: readonly string[]; workFolder: string }
  | { type: 'answer'; id: number; answer: unknown }
  | { type: 'cancel'; reason: string }
  | { type: 'end' };

/**
 * Kind of a failure. `input`: a mistake in the input, and the message names the change to make. `transient`: a fault of disk or
 * system, which the host tries again. `bug`: a mistake in the code, with a stack for the log. The kind that a child reports is a
 * claim; see `ReportedJobError`.
 */
export type FailureKind = 'input' | 'transient' | 'bug';

const text = z.string().max(16_384).transform(plainText);

/**
 * Bounds of the messages of one child. Parsing a result of this size takes a third of a second at the worst; pictures and
 * pixels are attached. An honest job reports its progress ten times a second.
 */
export const childLimits: ChannelLimits = {
  jsonBytes: { ready: 100, progress: 128 * 1024, ask: 256 * 1024, failed: 256 * 1024, done: 1024 * 1024 },
  attachedTo: ['ask', 'done'],
  burst: 500,
  messagesPerSecond: 100,
};

/** Child to host, held to its shape: a child that a file has taken over may say anything. What `output` is, the caller of its job knows. */
export const fromChild = z.discriminatedUnion('type', [
  /** The process has started: what ends it from here on is the job's. */
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('progress'), fraction: z.number().min(0).max(1), note: text.nullable() }),
  z.object({ type: z.literal('ask'), id: z.int().min(0), question: z.unknown() }),
  z.object({ type: z.literal('done'), output: z.unknown() }),
  z.object({
    type: z.literal('failed'),
    kind: z.enum(['input', 'transient', 'bug']),
    code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/),
    message: text,
    stack: text.nullable(),
  }),
]);
export type FromChild = z.output<typeof fromChild>;

/** Lets a job report its progress, and learn that it has to stop. */
export interface JobContext {
  /** Aborted when the host cancels. A message reaches the child only between synchronous GDAL calls: await something now and then. */
  readonly signal: AbortSignal;
  /** `fraction` from 0 to 1. Sent at most every 100 ms. */
  readonly progress: (fraction: number, note?: string) => void;
}

/** Everything that a job receives in addition to its input. */
export interface ChildContext extends JobContext {
  /** Paths of the foreign files that the host lends to the job, in their order. They are absolute, and the files are read-only. */
  readonly files: readonly string[];
  /** The one folder that the job may write to. */
  readonly workFolder: string;
  /** Asks the host for what the job cannot do itself; the host may end the job instead. Question and answer are plain data. */
  readonly ask: (question: unknown) => Promise<unknown>;
}

/** The default export of a job module. Input and output cross a process boundary: plain data only. */
export type Job<Input, Output> = (input: Input, context: ChildContext) => Output | Promise<Output>;
