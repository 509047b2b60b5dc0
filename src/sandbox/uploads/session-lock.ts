/** Runs what has the same key one after the other, in the order in which it was asked for. */
export class SessionLock {
  #last = new Map<string, Promise<unknown>>();

  isHeld(key: string): boolean {
    return this.#last.has(key);
  }

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(task, task);
    const settled = turn.catch(() => {});
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return turn;
  }
}
