// @module-tag all
/** The short attacks of `npm run lab -- lab/attack/run.ts`, each with its control. */
import { describe, expect, test } from 'vitest';
import { onChildren } from '../../lab/attack/on-children.ts';
import { onServers } from '../../lab/attack/on-servers.ts';
import { onWords } from '../../lab/attack/on-words.ts';
import { confined, fileNeeds, python } from '../support/needs.ts';

fileNeeds(await confined(), python);

const attacks = [...onChildren, ...onWords, ...onServers].filter(({ isShort }) => isShort);

/** Attacks that achieve nothing on some machines even where nothing stops them. */
const dependOnMachine = ['opens the settings of the kernel for writing', 'asks for notifications of a folder'];

describe.each(Object.entries(Object.groupBy(attacks, ({ group }) => group)))('%s', (_group, ofGroup = []) => {
  test.each(ofGroup.map((one) => [one.name, one] as const))('%s', async (name, { attack, control }) => {
    expect(await attack()).toBeNull();
    const shows = await control();
    if (!dependOnMachine.includes(name)) expect(shows).toBeNull();
  });
});
