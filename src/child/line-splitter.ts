import { plainText } from './plain-text.ts';

const lineCharacters = 2_000;
/** In a second. */
const maxLines = 1_000;

/** Whole lines of a stream that anybody may write anything into: long ones are cut, control characters left out, and so are lines that come faster than a thousand a second. */
export class LineSplitter {
  #rest = '';
  #tell: (line: string) => void;
  /** Number of lines in the current second. */
  #told = 0;
  #secondEndsMs = 0;

  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  add(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, lineCharacters);
    lines.forEach((line) => this.#say(line));
  }

  end(): void {
    if (this.#rest !== '') this.#say(this.#rest);
    this.#rest = '';
  }

  /** More came than anybody reads: what follows in this second is left out. Whoever reads may wait a little. */
  get isOver(): boolean {
    return this.#told > maxLines;
  }

  #say(line: string): void {
    const now = performance.now();
    if (now > this.#secondEndsMs) [this.#told, this.#secondEndsMs] = [0, now + 1_000];
    if (++this.#told > maxLines) return;
    const plain = plainText(line.slice(0, lineCharacters));
    if (plain.trim() !== '') this.#tell(plain);
  }
}
