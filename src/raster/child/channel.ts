import type { Duplex } from 'node:stream';

/** The descriptor by which a child talks with its host. */
export const channelDescriptor = 3;
/** The longest message: a picture, or the facts of a file. */
const mostBytes = 64 * 1024 * 1024;

/** What is sent is JSON, but for bytes. */
interface Encoded {
  readonly bytes: string;
}

/**
 * Messages over a stream, a line of JSON each. Who sends them may mean harm: a line that is too long, or no JSON, ends the
 * channel, and nothing that comes throws where nobody catches it.
 */
export class Channel {
  #stream: Duplex;
  #parts: Buffer[] = [];
  #length = 0;
  #isOpen = true;

  /** `onMessage` is given any JSON value. `onEnd` is called once, with what was wrong, or null where the other side is gone. */
  constructor(stream: Duplex, onMessage: (message: unknown) => void, onEnd: (fault: string | null) => void) {
    this.#stream = stream;
    const end = (fault: string | null) => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      this.#parts = [];
      stream.destroy();
      onEnd(fault);
    };
    stream.on('error', () => end(null));
    stream.on('close', () => end(null));
    stream.on('end', () => end(null));
    stream.on('data', (chunk: Buffer) => {
      for (let from = 0; this.#isOpen && from < chunk.length;) {
        const at = chunk.indexOf(10, from);
        const part = chunk.subarray(from, at < 0 ? chunk.length : at);
        this.#length += part.length;
        if (this.#length > mostBytes) return end('it sent a message that is too long');
        this.#parts.push(part);
        if (at < 0) return;
        from = at + 1;
        const line = Buffer.concat(this.#parts).toString('utf8');
        [this.#parts, this.#length] = [[], 0];
        try {
          onMessage(JSON.parse(line, decodeBytes) as unknown);
        } catch {
          return end('it sent something other than a message');
        }
      }
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves when it is written, or cannot be any more. */
  send(message: unknown): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    return new Promise((resolve) => this.#stream.write(`${JSON.stringify(message, encodeBytes)}\n`, () => resolve()));
  }

  /** Keeps no process alive. */
  unref(): void {
    (this.#stream as { unref?: () => void }).unref?.();
  }
}

function encodeBytes(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  // A Buffer has become an object of numbers by its own `toJSON` already.
  const own = this[key];
  return own instanceof Uint8Array ? ({ bytes: Buffer.from(own).toString('base64') } satisfies Encoded) : value;
}

function decodeBytes(_key: string, value: unknown): unknown {
  const isEncoded =
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).length === 1 &&
    typeof (value as Partial<Encoded>).bytes === 'string';
  return isEncoded ? new Uint8Array(Buffer.from((value as Encoded).bytes, 'base64')) : value;
}
