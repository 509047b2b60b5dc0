import { secretFree } from './secret-free.ts';
import type { IdentityStores } from '../identity/identity-slice.ts';
import { secretCharacters } from '../secrets.ts';
import type { Services, Slice } from '../slices.ts';
import { scrubber } from './redaction.ts';
import { Trace } from './trace.ts';
import { rulesOf } from './verdict.ts';
import { Verdicts } from './verdicts.ts';

export interface RefereeStores {
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  /** Removes keys and identity tokens from a value. */
  readonly redact: <T>(value: T) => T;
}

/** Opens the trace of calls and the verdicts about it. */
export function openReferee(
  { config, database, clock, log, profile }: Services,
  { keys, tokens }: IdentityStores,
): Slice<RefereeStores> {
  const ownKey = scrubber(config.apiKey === null ? [] : [config.apiKey]);
  // Only texts of these lengths can be a key or a token.
  const lengths = [secretCharacters, config.apiKey?.length];
  const known = secretFree(
    (text) => lengths.includes(text.length) && (keys.find(text) !== null || tokens.identify(text) !== null),
  );
  const redact = <T>(value: T): T => known(ownKey(value));
  const trace = new Trace(database, clock, log, redact);
  return {
    stores: { trace, redact, verdicts: new Verdicts(trace, rulesOf(profile.limits)) },
    topics: [['calls', ['calls']]],
    forget: () => trace.clear(),
    close: () => trace.close(),
  };
}
