import { changedForm, interfaceCalls, KitError, type WireCallName, type WireProfile } from '../../contract/index.ts';
import { again, learnAnswer } from './learn-answer.ts';
import { learnKey } from './learn-key.ts';
import { learnOptional } from './learn-optional.ts';
import { learnRefusal } from './learn-refusal.ts';
import type { PlatformPlace } from './platform-place.ts';

/** Each try teaches one difference. */
const mostTries = 40;

type Calls = WireProfile['calls'];
type InputOf<Name extends WireCallName> = Parameters<Calls[Name]['encode']>[0];

/**
 * Makes a call until the profile fits it, each time with a new input, and asks what the answers do not tell. Returns what the client reads.
 * Throws `KitError` if the platform refuses for good, or if nobody knows more.
 */
export async function learnCall<Name extends WireCallName>(
  place: PlatformPlace,
  name: Name,
  input: () => InputOf<Name>,
): Promise<ReturnType<Calls[Name]['decode']>> {
  const { learned, dialogue } = place;
  const send = () => place.send(name, input());
  for (let tries = 0; tries < mostTries; tries++) {
    const { method, path } = changedForm(name, learned.call(name));
    if (tries === 0) dialogue.say(`${interfaceCalls[name]?.summary}: ${method} ${path}`);
    const seen = await send();
    const { status } = seen.answer;
    if (!place.isKeyKnown && (status === 401 || status === 403)) {
      if (!(await learnKey(place, seen, send))) await learnRefusal(place, name, seen, true);
      continue;
    }
    if (status < 200 || status > 299) {
      await learnRefusal(place, name, seen);
      learned.save();
      continue;
    }
    place.isKeyKnown = true;
    const output = await learnAnswer(place, name, seen);
    learned.save();
    if (output === again) continue;
    dialogue.say('  understood');
    if (method !== 'GET' && name !== 'searchItems') await learnOptional(place, name);
    learned.save();
    // The decoder of the call made it.
    return output as ReturnType<Calls[Name]['decode']>;
  }
  throw new KitError(
    'not_connected',
    `${interfaceCalls[name]?.summary}: after ${mostTries} tries the platform still refuses`,
  );
}
