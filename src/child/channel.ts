import type { Duplex } from 'node:stream';

/** The descriptor by which a child talks with its host. */
export const channelDescriptor = 3;

/** Bounds of what a channel takes. The defaults are for a host that is trusted. */
export interface ChannelLimits {
  /** Bytes of the JSON of one message, by the message's type. Default: no bound but `bytes`. */
  readonly jsonBytes?: Readonly<Record<string, number>>;
  /** Types of messages that may have attachments. Default: all. */
  readonly attachedTo?: readonly string[];
  /** Messages that may come at once; one more each `1 / messagesPerSecond` s. Default: any number. */
  readonly burst?: number;
  readonly messagesPerSecond?: number;
}

/** All the bytes beside the JSON of one message: pictures, pixels. */
const maxAttachedBytes = 64 * 1024 * 1024;
const maxAttachments = 1_000;
/** `<size>,<size>:{"type":"<type>"` */
const maxHeadBytes = 16 * 1024;

/** The line of a message, and what is to follow it. */
interface Head {
  readonly json: string;
  readonly sizes: readonly number[];
  readonly total: number;
}

/** Stands in the JSON for the attachment of that index. */
interface Placeholder {
  readonly attachment: number;
}

/**
 * Messages over a stream: `<sizes of attachments>:<JSON>`, a line, then the attachments. A message is an object whose first
 * key is `type`; bytes in it travel as attachments, so that no JSON is large. Whoever sends may mean harm: what goes beyond
 * a limit, or is no message, ends the channel, and nothing that comes throws where nobody catches it.
 */
export class Channel {
  #stream: Duplex;
  #limits: ChannelLimits;
  #parts: Buffer[] = [];
  #length = 0;
  /** The message whose attachments are awaited. */
  #head: Head | null = null;
  /** Bytes that the line under way may have; known when its head is there. */
  #maxLine: number | null = null;
  #type = '';
  #tokens: number;
  #countedMs = performance.now();
  #isOpen = true;

  /** `onEnd` is called once, with what was wrong, or null where the other side is gone. */
  constructor(
    stream: Duplex,
    onMessage: (message: unknown) => void,
    onEnd: (fault: string | null) => void,
    limits: ChannelLimits = {},
  ) {
    this.#stream = stream;
    this.#limits = limits;
    this.#tokens = limits.burst ?? Infinity;
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
      let rest = chunk;
      while (this.#isOpen && rest.length > 0) {
        const taken = this.#take(rest);
        if (typeof taken === 'string') return end(taken);
        rest = rest.subarray(taken.bytes);
        if (taken.message === undefined) continue;
        try {
          onMessage(taken.message);
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
  send(message: { readonly type: string }): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    const attachments: Uint8Array[] = [];
    const { type, ...more } = message;
    const json = JSON.stringify({ type, ...more }, function (this: Record<string, unknown>, key, value: unknown) {
      // A Buffer has become an object of numbers by its own `toJSON` already.
      const own = this[key];
      if (!(own instanceof Uint8Array)) return value;
      attachments.push(own);
      return { attachment: attachments.length - 1 } satisfies Placeholder;
    });
    return new Promise((resolve) => {
      this.#stream.cork();
      this.#stream.write(`${attachments.map(({ length }) => length).join(',')}:${json}\n`);
      for (const bytes of attachments) if (bytes.length > 0) this.#stream.write(bytes);
      this.#stream.write('', () => resolve());
      this.#stream.uncork();
    });
  }

  /** Keeps no process alive. */
  unref(): void {
    // Sockets and pipes have it, other streams do not.
    (this.#stream as { unref?: () => void }).unref?.();
  }

  /** Takes from the front of these bytes; a text says what was wrong. */
  #take(bytes: Buffer): { readonly bytes: number; readonly message?: unknown } | string {
    if (this.#head !== null) {
      const part = bytes.subarray(0, this.#head.total - this.#length);
      this.#keep(part);
      return this.#length < this.#head.total ? { bytes: part.length } : this.#finish(this.#head, part.length);
    }
    const at = bytes.indexOf(10);
    const part = at < 0 ? bytes : bytes.subarray(0, at);
    this.#keep(part);
    if (this.#maxLine === null) this.#maxLine = this.#boundOfLine();
    if (this.#length > (this.#maxLine ?? maxHeadBytes)) return 'it sent a message that is too long';
    if (at < 0) return { bytes: part.length };
    const line = this.#collect().toString('utf8');
    this.#maxLine = null;
    if (!this.#mayCome()) return 'it sent too many messages';
    const colon = line.indexOf(':');
    const sizes = line
      .slice(0, Math.max(colon, 0))
      .split(',')
      .filter((name) => name !== '')
      .map(Number);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0;
    const mayAttach = sizes.length === 0 || (this.#limits.attachedTo?.includes(this.#type) ?? true);
    if (colon < 0 || !mayAttach || sizes.length > maxAttachments || !sizes.every(isSize) || total > maxAttachedBytes)
      return 'it sent something other than a message';
    this.#head = { json: line.slice(colon + 1), sizes, total };
    return total === 0 ? this.#finish(this.#head, part.length + 1) : { bytes: part.length + 1 };
  }

  #finish({ json, sizes }: Head, bytes: number): { readonly bytes: number; readonly message: unknown } | string {
    const attached = this.#collect();
    this.#head = null;
    let from = 0;
    const attachments = sizes.map((size) => new Uint8Array(attached.subarray(from, (from += size))));
    try {
      const message: unknown = JSON.parse(json);
      return { bytes, message: attachments.length === 0 ? message : filled(message, attachments) };
    } catch {
      return 'it sent something other than a message';
    }
  }

  /** Maximum length of the line under way; null until its type has come. */
  #boundOfLine(): number | null {
    const { jsonBytes } = this.#limits;
    if (!jsonBytes) return Infinity;
    const [, sizes, type] = /^([\d,]*):\{"type":"([a-z]{1,20})"/.exec(this.#beginning()) ?? [];
    if (type === undefined) return null;
    this.#type = type;
    return (jsonBytes[type] ?? 0) + (sizes?.length ?? 0) + 1;
  }

  #beginning(): string {
    const parts: Buffer[] = [];
    let length = 0;
    for (const part of this.#parts) {
      parts.push(part);
      if ((length += part.length) >= maxHeadBytes) break;
    }
    return Buffer.concat(parts).subarray(0, maxHeadBytes).toString('latin1');
  }

  #keep(part: Buffer): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  #collect(): Buffer {
    const whole = Buffer.concat(this.#parts);
    [this.#parts, this.#length] = [[], 0];
    return whole;
  }

  #mayCome(): boolean {
    const { burst = Infinity, messagesPerSecond = Infinity } = this.#limits;
    if (burst === Infinity) return true;
    const now = performance.now();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#countedMs) / 1_000) * messagesPerSecond) - 1;
    this.#countedMs = now;
    return this.#tokens >= 0;
  }
}

/** Puts the attachments where they belong. */
function filled(value: unknown, attachments: readonly Uint8Array[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { attachment }: Partial<Placeholder> = value;
  if (typeof attachment === 'number' && Object.keys(value).length === 1) return attachments[attachment];
  for (const [key, own] of Object.entries(value)) {
    // `__proto__` is a key like any other of what was parsed.
    if (typeof own === 'object' && own !== null)
      Object.defineProperty(value, key, { value: filled(own, attachments), configurable: true, enumerable: true, writable: true }); // oxfmt-ignore
  }
  return value;
}
