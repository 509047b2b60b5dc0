/** One attack, and a control that shows that it works if nothing stops it. */
export interface Attack {
  readonly group: string;
  readonly name: string;
  /** Resolves with null if the attack achieved nothing, else with what it achieved. */
  readonly attack: () => Promise<string | null>;
  /** Runs the attack where nothing stops it. Resolves with null if it works there, else with the reason why it shows nothing on this machine. */
  readonly control: () => Promise<string | null>;
  /** True if the attack takes some seconds at most, so that every run of the tests can afford it. */
  readonly isShort: boolean;
}
