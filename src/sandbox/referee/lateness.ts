const everyMs = 250;
const keptMs = 60_000;

/** Measures delays of this process's event loop. A sandbox that is late itself cannot prove that an app was late. */
export class Lateness {
  #late: { readonly atMs: number; readonly byMs: number }[] = [];
  #timer: NodeJS.Timeout;

  constructor() {
    let expected = performance.now() + everyMs;
    this.#timer = setInterval(() => {
      const now = performance.now();
      const byMs = now - expected;
      if (byMs > 20) this.#late.push({ atMs: now, byMs });
      while (this.#late[0] && this.#late[0].atMs < now - keptMs) this.#late.shift();
      expected = now + everyMs;
    }, everyMs);
    this.#timer.unref();
  }

  /** The sum of all delays in the last `ms` milliseconds, up to one minute back. */
  within(ms: number): number {
    const from = performance.now() - ms;
    return this.#late.reduce((sum, { atMs, byMs }) => (atMs >= from ? sum + byMs : sum), 0);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
