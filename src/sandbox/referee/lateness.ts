const everyMs = 250;
const keptMs = 60_000;
const leastMs = 20;

/** Measures delays of this process's event loop. A sandbox that is late itself cannot prove that an app was late. */
export class Lateness {
  #late: { readonly atMs: number; readonly byMs: number }[] = [];
  #expected = performance.now() + everyMs;
  #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#look(), everyMs);
    this.#timer.unref();
  }

  #look(): void {
    const now = performance.now();
    const byMs = now - this.#expected;
    if (byMs > leastMs) this.#late.push({ atMs: now, byMs });
    while (this.#late[0] && this.#late[0].atMs < now - keptMs) this.#late.shift();
    this.#expected = now + everyMs;
  }

  /** The sum of all delays in the last `ms` milliseconds, up to one minute back. */
  within(ms: number): number {
    // After a pause of the whole process, calls are handled before the timer fires.
    if (performance.now() > this.#expected + leastMs) this.#look();
    const from = performance.now() - ms;
    return this.#late.reduce((sum, { atMs, byMs }) => (atMs >= from ? sum + byMs : sum), 0);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
