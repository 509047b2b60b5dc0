/** Somebody who has the documents of a platform, and answers what `connect` asks from them. */
import { changedForm, wireCallNames, type WireCallName, type WireChanges } from '../../src/contract/index.ts';
import { answerOf, type Dialogue, type Question } from '../../src/commands/connect/dialogue.ts';

export interface Answering extends Dialogue {
  /** Everything that was said and asked. */
  readonly lines: string[];
  readonly asked: Question[];
}

/** Answers from a profile. `others`: answers to questions that a profile does not hold. `onSay`: called with each line. */
export function answering(
  documents: WireChanges,
  { others = {}, onSay = () => {} }: { others?: Record<string, string>; onSay?: (line: string) => void } = {},
): Answering {
  const [lines, asked]: [string[], Question[]] = [[], []];
  return {
    lines,
    asked,
    say(line) {
      lines.push(line);
      onSay(line);
    },
    ask(question) {
      asked.push(question);
      const typed = others[question.about] ?? fromDocuments(documents, question) ?? '';
      const answer = answerOf(question, typed);
      const problem = answer === null ? `${JSON.stringify(typed)} is no answer` : question.check?.(answer);
      if (answer === null || problem != null)
        return Promise.reject(new Error(`${question.about}: ${question.text}\n${problem}`));
      lines.push(`? ${question.text} > ${answer}`);
      return Promise.resolve(answer);
    },
  };
}

const isCall = (name: string): name is WireCallName => wireCallNames.some((call) => call === name);

function fromDocuments(documents: WireChanges, { about, choices: offered = [] }: Question): string | undefined {
  const choices = offered.map(({ value }) => value);
  const [place = '', name = '', ...rest] = about.split(/\.(?=[a-zA-Z])|(?=:)/);
  if (place === 'apiKey')
    return documents.apiKey && `${documents.apiKey.header}: ${documents.apiKey.prefix?.trim() ?? ''}`;
  if (about.startsWith('errors.fields.')) return documents.errors?.fields?.[about.slice(14) as 'error'];
  if (about === 'errors.codes.token_expired')
    return documents.errors?.codes?.token_expired ?? Object.keys(documents.errors?.statuses ?? {})[0];
  if (about === 'limits.pollIntervalMs.min') return seconds(documents.limits?.pollIntervalMs?.min);
  if (about === 'limits.chunkBytes')
    return documents.limits?.chunkBytes === undefined ? undefined : String(documents.limits.chunkBytes / 1e6);
  if (about.startsWith('refusedFields.')) return 'yes';
  if (place !== 'calls' || !isCall(name)) return undefined;
  const changes = documents.calls?.[name] ?? {};
  const form = changedForm(name, changes);
  const [part = '', ...more] = rest;
  const field = about.split('.response.')[1] ?? '';
  if (part === 'path') return `${form.method} ${form.path}`;
  if (part === 'optional') {
    const pairs = Object.entries(changes.request ?? {})
      .map(([ours, theirs]) => [ours, typeof theirs === 'string' ? theirs : theirs.name] as const)
      .filter(
        ([ours]) =>
          ['description', 'idempotencyKey'].includes(ours) || (ours === 'sourceType' && name !== 'completeUpload'),
      );
    return pairs.map((pair) => pair.join('=')).join(' ');
  }
  if (part === 'unfinished') return changes.unfinished === undefined ? 'no' : 'yes';
  if (field.startsWith('status.values.')) {
    const change = changes.response?.['status'];
    const values = typeof change === 'object' ? (change.values ?? {}) : {};
    const word = field.slice('status.values.'.length).toLowerCase();
    return Object.entries(values).find(([, theirs]) => theirs.toLowerCase() === word)?.[0];
  }
  if (part === 'response') {
    const change = changes.response?.[field];
    const name = typeof change === 'object' ? (change.join?.join('+') ?? change.name) : change;
    // An answer before the result has not all of the fields.
    return name !== undefined && !name.includes('+') && !choices.includes(name) ? undefined : name;
  }
  const moved = changes.request?.[about.split('.request.')[1] ?? ''];
  if (typeof moved === 'object') return `${moved.in} ${moved.name}`;
  if (about.includes('.constants.')) {
    const value = changes.constants?.[about.split('.constants.')[1] ?? ''];
    return value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value);
  }
  if (about.includes('.request:')) {
    const theirs = about.split('.request:')[1] ?? '';
    if (theirs in (changes.constants ?? {})) return 'constant';
    if (theirs === changes.file) return 'the file';
    return form.fields.find((known) => known.name.toLowerCase() === theirs.toLowerCase())?.field ?? 'other';
  }
  if (part === '' && changes.body === 'raw') return 'raw';
  return more.length > 0 ? undefined : 'stop';
}

const seconds = (ms: number | undefined) => (ms === undefined ? undefined : String(ms / 1_000));
