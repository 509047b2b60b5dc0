/** How many event streams are open: they cost a timer and a connection each for as long as somebody likes. */
export class OpenStreams {
  #maxOfOne: number;
  #maxOfAll: number;
  #byOwner = new Map<string, number>();
  #all = 0;

  constructor({ maxOfOne, maxOfAll }: { readonly maxOfOne: number; readonly maxOfAll: number }) {
    this.#maxOfOne = maxOfOne;
    this.#maxOfAll = maxOfAll;
  }

  /** Counts one more stream of `owner` until the caller calls the returned function; null if there is no room. */
  open(owner: string): (() => void) | null {
    const own = this.#byOwner.get(owner) ?? 0;
    if (own >= this.#maxOfOne || this.#all >= this.#maxOfAll) return null;
    this.#byOwner.set(owner, own + 1);
    this.#all += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#all -= 1;
      const left = (this.#byOwner.get(owner) ?? 1) - 1;
      if (left > 0) this.#byOwner.set(owner, left);
      else this.#byOwner.delete(owner);
    };
  }
}
