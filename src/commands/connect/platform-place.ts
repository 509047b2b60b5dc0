import type { WireCallName, WireProfile } from '../../contract/index.ts';
import type { RawAnswer } from '../../drift/facts.ts';
import { Conversation, type Pace } from '../../drift/target.ts';
import type { Dialogue } from './dialogue.ts';
import type { LearnedProfile } from './learned-profile.ts';
import { noRecording, type Recording } from './recording.ts';

/** One answer, with a text of it that holds no secret. */
export interface SeenAnswer {
  readonly answer: RawAnswer;
  readonly shown: string;
}

/** The platform that is connected, and what is known of it. */
export class PlatformPlace {
  readonly url: string;
  readonly learned: LearnedProfile;
  readonly dialogue: Dialogue;
  /** Requests of another client, for suggestions. */
  readonly recording: Recording;
  /** The identity token that holds now. */
  token: string;
  /** True when the platform has taken the key. */
  isKeyKnown = false;
  readonly #apiKey: string;
  readonly #pace: Pace;

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
    ({ url: this.url, token: this.token, learned: this.learned, dialogue: this.dialogue } = given);
    [this.#apiKey, this.#pace] = [given.apiKey, given.pace];
    this.recording = given.recording ?? noRecording;
  }

  get apiKey(): string {
    return this.#apiKey;
  }

  /** Makes a call as the profile writes it by now. Throws `KitError` if nothing answers. */
  async send<Name extends WireCallName>(
    name: Name,
    input: Parameters<WireProfile['calls'][Name]['encode']>[0],
  ): Promise<SeenAnswer> {
    const conversation = new Conversation({
      url: this.url,
      apiKey: this.#apiKey,
      profile: this.learned.profile,
      pace: this.#pace,
      token: () => Promise.resolve(this.token),
      approve: () => Promise.resolve(),
    });
    conversation.hide(this.token);
    const answer = await conversation.call(name, name, input);
    const exchange = conversation.exchanges.find(({ method }) => method !== '');
    return { answer, shown: exchange?.responseBody ?? '' };
  }

  /** A text of an answer on the screen: a long one may be a token. */
  shownValue(value: unknown): string {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const isSecret = text.includes(this.token) || text.includes(this.#apiKey);
    if (isSecret || text.length > 60) return `(${text.length} characters)`;
    return typeof value === 'string' && value.length >= 24 && Number.isNaN(Date.parse(value)) && !value.includes(' ')
      ? `(a text of ${value.length} characters)`
      : text;
  }
}
