/** A map that keeps `maxEntries` entries. Beyond that it drops the entry that was read or set longest ago. */
export class RecentMap<Key, Value> {
  #entries = new Map<Key, Value>();
  #maxEntries: number;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries) break;
      this.#entries.delete(oldest);
    }
  }
}
