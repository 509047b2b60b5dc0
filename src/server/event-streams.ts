import type { Request, Response } from 'express';

/** A response of server-sent events. */
export interface EventStream {
  /** Reader that the stream counts for. */
  readonly owner: string;
  /** Makes the error of a reader that may open no more streams. */
  readonly refusal: () => Error;
  /** Starts to send changes. Returns the function that stops it. */
  readonly begin: (send: (data: string) => void) => () => void;
}

/** Serves server-sent events named `change`. Each stream costs a timer and a connection while it is open, so their number is limited. */
export class EventStreams {
  #maxOfOne: number;
  #maxOfAll: number;
  #byOwner = new Map<string, number>();
  #all = 0;

  constructor({ maxOfOne, maxOfAll }: { readonly maxOfOne: number; readonly maxOfAll: number }) {
    this.#maxOfOne = maxOfOne;
    this.#maxOfAll = maxOfAll;
  }

  /** Number of open streams. */
  get open(): number {
    return this.#all;
  }

  /** Answers a request with a stream, until its reader leaves. Throws the stream's refusal. */
  serve(req: Request, res: Response, { owner, refusal, begin }: EventStream): void {
    if (req.method === 'HEAD') return void res.type('text/event-stream').end();
    const own = this.#byOwner.get(owner) ?? 0;
    if (own >= this.#maxOfOne || this.#all >= this.#maxOfAll) throw refusal();
    this.#byOwner.set(owner, own + 1);
    this.#all += 1;
    res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
    res.flushHeaders();
    // Browsers then do not all reconnect at once after a restart.
    res.write(`retry: ${1_000 + Math.round(Math.random() * 2_000)}\n\n`);
    const stop = begin((data) => res.write(`event: change\ndata: ${data}\n\n`));
    req.once('close', () => {
      stop();
      this.#leave(owner);
    });
  }

  #leave(owner: string): void {
    this.#all -= 1;
    const left = (this.#byOwner.get(owner) ?? 1) - 1;
    if (left > 0) this.#byOwner.set(owner, left);
    else this.#byOwner.delete(owner);
  }
}
