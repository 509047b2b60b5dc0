/** Programs of the machine that steps run. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { KitError } from '../contract/kit-error.ts';
import { programPath } from '../child/in-child.ts';
import needs from '../needs.json' with { type: 'json' };

/** Error for a program that the machine does not have. It names Debian's package if the kit knows it. */
export function programNotFound(program: string): KitError {
  const debian = Object.values(needs).find(({ programs }) => programs.some((names) => names.includes(program)))?.debian;
  const remedy = debian ? `: apt-get install ${debian.join(' ')}` : '';
  return new KitError('program_not_found', `the program ${program} is not installed where the app runs${remedy}`, {
    status: 503,
    data: { isForUser: true },
  });
}

/** Throws `KitError` (503) unless the machine has this program. A path is the step's own matter. */
export function requireProgram(program: string): void {
  if (/[/{]/.test(program)) return;
  if (!programPath.split(delimiter).some((folder) => existsSync(join(folder, program)))) throw programNotFound(program);
}
