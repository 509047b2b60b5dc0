import type { WireChanges } from '../../contract/index.ts';
import type { PlatformPlace, SeenAnswer } from './platform-place.ts';

/** Headers in which platforms take an API key, the usual ones first. */
const usual: readonly NonNullable<WireChanges['apiKey']>[] = [
  { header: 'Authorization', prefix: 'Bearer ' },
  { header: 'Authorization', prefix: 'ApiKey ' },
  { header: 'Authorization', prefix: 'Api-Key ' },
  { header: 'Authorization', prefix: 'Token ' },
  { header: 'Authorization' },
  { header: 'Api-Key' },
  { header: 'ApiKey' },
  { header: 'X-Auth-Token' },
  { header: 'Ocp-Apim-Subscription-Key' },
];

/**
 * Finds the header of the API key by making the refused call with the usual ones, and asks if none fits. Returns false if the
 * person says that the header is right.
 */
export async function learnKey(
  place: PlatformPlace,
  { answer, shown }: SeenAnswer,
  sendAgain: () => Promise<SeenAnswer>,
): Promise<boolean> {
  const { learned, dialogue } = place;
  const isNew = learned.changes.apiKey === undefined;
  const before = learned.changes.apiKey;
  dialogue.say(`  ${answer.status}: ${shown}`);
  const isTaken = async (apiKey: NonNullable<WireChanges['apiKey']>) => {
    learned.change({ apiKey });
    const { answer: next, body } = await sendAgain();
    // Another refusal may be about the key too.
    return (next.status >= 200 && next.status < 300) || (next.status === 404 && body !== undefined);
  };
  for (const apiKey of isNew ? usual : [])
    if (await isTaken(apiKey)) {
      dialogue.say(`  the key goes into the header ${apiKey.header}, as "${apiKey.prefix ?? ''}KEY"`);
      return true;
    }
  learned.change({ apiKey: before });
  for (;;) {
    const line = await dialogue.ask({
      about: 'apiKey',
      text: 'The platform refuses the call with the key in every usual header. Which header takes it? Write HEADER: or HEADER: PREFIX, such as Authorization: Bearer. An empty line if the header is right, or the path is another one.',
      preset: 'right',
      check: (text) =>
        text === 'right' || /^[\w-]+:.{0,100}$/.test(text) ? null : 'write the name of a header with a colon',
    });
    if (line === 'right') return false;
    const [, header = '', prefix = ''] = /^([\w-]+): *(.*)$/.exec(line) ?? [];
    if (await isTaken({ header, ...(prefix !== '' && { prefix: `${prefix} ` }) })) return true;
    learned.change({ apiKey: before });
    dialogue.say('  the platform refuses it there too');
  }
}
