import { KitError, type WireCallName, type WireProfile } from '../../contract/index.ts';
import { jsonOf, type RawAnswer } from '../../drift/facts.ts';
import { Conversation, NotObserved, type Pace } from '../../drift/target.ts';
import { withEscapes, type Dialogue, type Question } from './dialogue.ts';
import type { LearnedProfile } from './learned-profile.ts';
import { noRecording, type Recording } from './recording.ts';

/** One answer. */
export interface SeenAnswer {
  /** The answer of the platform, which may hold secrets. */
  readonly answer: RawAnswer;
  /** Its JSON without the secrets that are known; undefined if it has none. */
  readonly body: unknown;
  /** Its text without secrets. */
  readonly shown: string;
}

const hidden = '[redacted]';
/** Longest part of a body in which secrets are looked for, in characters. */
const mostSearched = 200_000;

/** The platform that is connected, and what is known of it. Nothing that is said or asked here holds the key or the token. */
export class PlatformPlace {
  readonly url: string;
  readonly apiKey: string;
  readonly learned: LearnedProfile;
  /** Requests of another client, for suggestions. */
  readonly recording: Recording;
  readonly dialogue: Dialogue;
  /** True when the platform has taken the key. */
  isKeyKnown = false;
  readonly #conversation: Conversation;
  readonly #secrets = new Set<string>();
  #token = '';

  constructor(given: {
    readonly url: string;
    readonly apiKey: string;
    readonly token: string;
    readonly pace: Pace;
    readonly learned: LearnedProfile;
    readonly dialogue: Dialogue;
    /** Default: none. */
    readonly recording?: Recording;
  }) {
    ({ url: this.url, apiKey: this.apiKey, learned: this.learned } = given);
    const { recording = noRecording, dialogue, learned } = given;
    this.recording = recording;
    this.dialogue = {
      say: (line) => dialogue.say(this.redacted(line)),
      ask: (question) => dialogue.ask(this.#redactedQuestion(question)),
    };
    // One conversation, because it keeps the pace.
    this.#conversation = new Conversation({
      ...{ url: given.url, apiKey: given.apiKey, pace: given.pace },
      get profile() {
        return learned.profile;
      },
      token: () => Promise.resolve(this.token),
      approve: () => Promise.resolve(),
    });
    this.#secrets.add(given.apiKey);
    this.token = given.token;
  }

  /** The identity token that holds now. */
  get token(): string {
    return this.#token;
  }

  set token(token: string) {
    this.#token = token;
    this.#secrets.add(token);
    this.#conversation.hide(token);
  }

  /** Makes a call as the profile writes it by now. Throws `KitError` if nothing answers. */
  async send<Name extends WireCallName>(
    name: Name,
    input: Parameters<WireProfile['calls'][Name]['encode']>[0],
  ): Promise<SeenAnswer> {
    const { exchanges } = this.#conversation;
    exchanges.length = 0;
    const answer = await this.#conversation.call(name, name, input).catch((error: unknown) => {
      if (error instanceof NotObserved) throw new KitError('platform_away', error.message);
      throw error;
    });
    const exchange = exchanges.find(({ method }) => method !== '');
    const text = this.redacted(answer.body.subarray(0, mostSearched).toString('utf8'));
    const body = answer.body.length > mostSearched ? undefined : jsonOf({ ...answer, body: Buffer.from(text) });
    return { answer, body, shown: this.redacted(exchange?.responseBody ?? '') };
  }

  /** A text without key and token, and without characters that a terminal obeys. */
  redacted(text: string): string {
    let shown = text;
    for (const secret of this.#secrets)
      for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')])
        shown = shown.replaceAll(form, hidden);
    return shown;
  }

  #redactedQuestion(question: Question): Question {
    return {
      ...question,
      text: this.redacted(question.text),
      // A value that holds a secret can be no name.
      ...(question.choices && {
        choices: question.choices
          .filter(({ value }) => value === this.redacted(value) && value === withEscapes(value))
          .map(({ value, label }) => ({ value, label: this.redacted(label) })),
      }),
      check: (answer) =>
        answer === this.redacted(answer) ? (question.check?.(answer) ?? null) : 'it holds the key or the token',
    };
  }

  /** A value of an answer on the screen: a long one may be a token. */
  shownValue(value: unknown, holdsToken = false): string {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text.length > 60 || (holdsToken && typeof value === 'string' && Number.isNaN(Date.parse(value))))
      return `(${text.length} characters)`;
    return typeof value === 'string' && value.length >= 24 && Number.isNaN(Date.parse(value)) && !value.includes(' ')
      ? `(a text of ${value.length} characters)`
      : text;
  }
}
