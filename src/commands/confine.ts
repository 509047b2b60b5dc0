import {
  establishConfinement,
  gdalProblem,
  noChildren,
  type Confinement,
  type ConfinementSettings,
} from '../child/index.ts';

/**
 * Finds out how this server's children are confined. No child sees the `folders`, which are the server's own, nor the
 * `foreign` ones, whose files belong to others. Throws `ConfinementError`.
 */
export function confine(
  settings: ConfinementSettings,
  folders: readonly string[],
  foreign: readonly string[] = [],
): Promise<Confinement> {
  return establishConfinement({
    ...settings,
    hidden: [...folders, ...foreign],
    own: folders,
    warn: (message) => console.error(`warning: ${message}`),
  });
}

/** Confinement of a sandbox, which also runs on a machine without GDAL: it takes files as they are there. */
export function confineSandbox(settings: ConfinementSettings, folders: readonly string[]): Promise<Confinement> {
  const problem = gdalProblem();
  return problem === null ? confine(settings, folders) : Promise.resolve(noChildren(problem));
}
