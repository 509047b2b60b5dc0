import { establishConfinement, type Confinement, type ConfinementSettings } from '../child/index.ts';

/** Finds out how this server's children are confined; `folders` are the server's own, which no child sees. Throws `ConfinementError`. */
export function confine(settings: ConfinementSettings, folders: readonly string[]): Promise<Confinement> {
  return establishConfinement({
    ...settings,
    hidden: folders,
    warn: (message) => console.error(`warning: ${message}`),
  });
}
