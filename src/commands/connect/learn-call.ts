import { changedForm, interfaceCalls, KitError, type WireCallName, type WireProfile } from '../../contract/index.ts';
import { again, learnAnswer } from './learn-answer.ts';
import { learnKey } from './learn-key.ts';
import { learnOptional } from './learn-optional.ts';
import { learnRefusal } from './learn-refusal.ts';
import type { PlatformPlace } from './platform-place.ts';

/** Each try teaches one difference. */
const mostTries = 40;

type Calls = WireProfile['calls'];

/**
 * Makes a call until the profile fits it, and asks what the answers do not tell. Returns what the client reads.
 * Throws `KitError` if the platform refuses for good, or if nobody knows more.
 */
export async function learnCall<Name extends WireCallName>(
  place: PlatformPlace,
  name: Name,
  input: Parameters<Calls[Name]['encode']>[0],
): Promise<ReturnType<Calls[Name]['decode']>> {
  for (let tries = 0; tries < mostTries; tries++) {
    const { method, path } = changedForm(name, place.learned.call(name));
    if (tries === 0) place.dialogue.say(`${interfaceCalls[name]?.summary}: ${method} ${path}`);
    const seen = await place.send(name, input);
    const { status } = seen.answer;
    if (!place.isKeyKnown && (status === 401 || status === 403)) {
      await learnKey(place, seen, () => place.send(name, input));
      continue;
    }
    if (status !== 404) place.isKeyKnown = true;
    if (status < 200 || status > 299) {
      await learnRefusal(place, name, seen);
      continue;
    }
    const output = await learnAnswer(place, name, seen.answer);
    if (output === again) continue;
    place.dialogue.say('  understood');
    if (method !== 'GET' && name !== 'searchItems') await learnOptional(place, name);
    await place.learned.save();
    // The decoder of the call made it.
    return output as ReturnType<Calls[Name]['decode']>;
  }
  throw new KitError(
    'not_connected',
    `${interfaceCalls[name]?.summary}: after ${mostTries} tries the platform still refuses; what was learned is kept`,
  );
}
