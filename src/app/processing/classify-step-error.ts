import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Defect } from '../../child/in-child.ts';

/** Matches the file, line and column in the first frame of a stack. */
const place = /^\s+at (?:.*\()?((?:file:\/\/|\/)[^\n]*?):(\d+):(\d+)\)?$/m;
const construction = /^(?:new\s+)?Error\s*\(/;

/**
 * A plain `Error` means one of two things: a library could not read a file, which is the user's to mend, or a step gave up
 * without saying how. The stack of the second begins where the step's code constructs it. Gives the error, or a `Defect`.
 * Steps of integrators call GDAL themselves, so no wrapper of the kit can stand around these calls.
 */
export function classifyStepError(error: unknown): unknown {
  if (!(error instanceof Error) || error.constructor !== Error || typeof error.stack !== 'string') return error;
  const [, file = '', line, column] = place.exec(error.stack) ?? [];
  if (file === '' || file.includes('/node_modules/gdal-async/') || file.includes('/node_modules/sharp/')) return error;
  try {
    const source = readFileSync(file.startsWith('file:') ? fileURLToPath(file) : file, 'utf8');
    const there = source.split('\n')[Number(line) - 1]?.slice(Number(column) - 1) ?? '';
    return construction.test(there) ? new Defect(error) : error;
  } catch {
    return error;
  }
}
