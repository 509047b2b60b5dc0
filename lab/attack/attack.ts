/** One thing that somebody hostile tries, and how it is known whether it worked. */
export interface Attack {
  readonly group: string;
  readonly name: string;
  /** Resolves with null if the attack achieved nothing, else with what it achieved. */
  readonly attack: () => Promise<string | null>;
  /** The same where nothing stops it: null if it works there, else the reason why it shows nothing on this machine. */
  readonly control: () => Promise<string | null>;
  /** True if the attack takes some seconds at most, so that every run of the tests can afford it. */
  readonly isShort: boolean;
}
