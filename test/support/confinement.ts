import { establishConfinement, type Confinement, type ConfinementMode } from '../../src/child/index.ts';

const known = new Map<ConfinementMode, Promise<Confinement>>();

/** Confinement as the servers find it, established once for all tests of a file. */
export function testConfinement(mode: ConfinementMode = 'auto'): Promise<Confinement> {
  const confinement = known.get(mode) ?? establishConfinement({ mode, warn: (message) => console.warn(message) });
  known.set(mode, confinement);
  return confinement;
}
