const endBytes = 64 * 1024;

/** The ends of a body as one, and how many bytes are missing between them. */
export interface BodyEnds {
  readonly bytes: Uint8Array;
  readonly missing: number;
}

/** The first and the last bytes of a body. What lies between them is only counted. */
export class BodyCopy {
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #maxHeadBytes: number;
  #bytes = 0;

  constructor(maxHeadBytes = endBytes) {
    this.#maxHeadBytes = maxHeadBytes;
  }

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    const first = chunk.subarray(0, this.#maxHeadBytes - this.#headBytes);
    if (first.length > 0) this.#head.push(first);
    this.#headBytes += first.length;
    if (first.length === chunk.length) return;
    this.#tail.push(chunk.subarray(first.length));
    this.#tailBytes += chunk.length - first.length;
    // Whole pieces are let go: to cut them would copy every byte.
    while (this.#tailBytes - (this.#tail[0]?.length ?? Infinity) >= endBytes)
      this.#tailBytes -= this.#tail.shift()?.length ?? 0;
  }

  /** A copy: another thread that gets it does not get the memory around it. */
  ends(): BodyEnds {
    const bytes = new Uint8Array(Buffer.concat([...this.#head, ...this.#tail]));
    return { bytes, missing: this.#bytes - bytes.length };
  }
}
