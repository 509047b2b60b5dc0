import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { KitError } from '../../contract/index.ts';

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** One question to the person who connects a platform. */
export interface Question {
  /** Part of the wire profile that the answer fills, such as `calls.listModels.path`. */
  readonly about: string;
  readonly text: string;
  /** Answers to choose from, by number or by value. */
  readonly choices?: readonly Choice[];
  /** True if another answer than the choices is possible too. Default false. */
  readonly isOpen?: boolean;
  /** Answer of an empty line. Default: the question comes again. */
  readonly preset?: string;
  /** True if the answer is not shown while it is typed. Default false. */
  readonly isSecret?: boolean;
  /** Returns what is wrong with an answer; null if nothing is. */
  readonly check?: (answer: string) => string | null;
}

/** The person who connects a platform, or a script in their place. */
export interface Dialogue {
  say(line: string): void;
  /** Returns an answer that fits the question. Throws `KitError` if there are no more answers. */
  ask(question: Question): Promise<string>;
}

/** Returns the answer that a typed line means; null if it is none of the question's. */
export function answerOf({ choices = [], isOpen, preset }: Question, line: string): string | null {
  const text = line.trim();
  if (text === '') return preset ?? null;
  const numbered = /^\d+$/.test(text) ? choices[Number(text) - 1] : undefined;
  if (numbered) return numbered.value;
  if (choices.length === 0 || isOpen === true || choices.some(({ value }) => value === text)) return text;
  return null;
}

/** A text whose control characters, which a terminal obeys, are shown as codes. */
export const withEscapes = (text: string): string =>
  text.replaceAll(
    /(?!\n)\p{Cc}|[\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Lines of a question with numbered choices. The preset is in brackets. */
export function questionLines({ text, choices = [], preset }: Question): string[] {
  const width = Math.max(0, ...choices.map(({ value }) => value.length));
  return [
    `  ${text}`,
    ...choices.map(({ value, label }, i) =>
      `    ${String(i + 1).padStart(2)}  ${value.padEnd(width)}  ${label}${value === preset ? '  (Enter)' : ''}`.trimEnd(),
    ),
  ];
}

/** Asks in the terminal, or reads the answers from a pipe, one line each. */
export function terminalDialogue(): Dialogue & { close(): void } {
  const { stdin, stdout } = process;
  // A text that is typed or pasted before a question may be a secret.
  let isHidden = true;
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (!isHidden) stdout.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: stdin, output, terminal: stdin.isTTY, historySize: 0 });
  const typed: string[] = [];
  let isEnded = false;
  let wake = () => {};
  lines.on('line', (line) => {
    typed.push(line);
    wake();
  });
  lines.on('close', () => {
    isEnded = true;
    wake();
  });
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  async function nextLine(): Promise<string> {
    while (typed.length === 0) {
      if (isEnded) throw new KitError('interrupted', 'there are no more answers, so nothing more can be learned');
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return typed.shift() ?? '';
  }
  return {
    say: (line) => console.log(withEscapes(line)),
    async ask(question) {
      for (const line of questionLines(question)) console.log(withEscapes(line));
      for (;;) {
        stdout.write(question.preset === undefined ? '  > ' : `  [${question.preset}] > `);
        isHidden = question.isSecret === true;
        const line = await nextLine();
        if (isHidden || !stdin.isTTY) stdout.write('\n');
        isHidden = true;
        const answer = answerOf(question, line);
        const problem = answer === null ? 'choose a number, or write one of the names' : question.check?.(answer);
        if (answer !== null && problem == null) return answer;
        console.log(withEscapes(`  ${problem}`));
      }
    },
    close: () => lines.close(),
  };
}
