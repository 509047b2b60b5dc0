import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import gdal from 'gdal-async';
import { KitError } from '../../contract/kit-error.ts';
import { Defect, kindOfPlainError } from '../../child/in-child.ts';
import type { AnyStep } from '../../steps/step.ts';

/** Matches the file, line and column of each frame of a stack. */
const frames = /^\s+at (?:.*\()?((?:file:\/\/|\/)[^\n]*?):(\d+):(\d+)\)?$/gm;
const construction = /^(?:new\s+)?Error\s*\(/;
const missingPackage = /^Cannot find package '([^']+)'/;
const kit = new URL('../../', import.meta.url);
const fork = new URL('my-app/', kit);

interface Opened {
  readonly datasets: readonly gdal.Dataset[];
}

/**
 * Returns the error unchanged, or a `Defect` if the step's code is at fault.
 *
 * GDAL throws plain errors for a damaged input and for a misused function alike. A plain error is a defect if the step's code
 * constructs it. If the stack contains code from outside the kit, the error is a defect unless an input cannot be read completely.
 */
export async function classifyStepError(error: unknown, step: AnyStep, inputs: readonly Opened[]): Promise<unknown> {
  if (!(error instanceof Error) || error instanceof KitError) return error;
  const [, missing] = missingPackage.exec(error.message) ?? [];
  if (missing !== undefined) error.message += `. Install it where the app runs: npm install ${missing}`;
  if (kindOfPlainError(error) !== 'input') return error;
  if (isConstructedByStep(error)) return new Defect(error);
  if (!(await involvesForeignCode(error, step))) return error;
  return errorOfReading(inputs) ?? new Defect(error);
}

const framesOf = ({ stack = '' }: Error) =>
  [...stack.matchAll(frames)].map(([, file = '', line, column]) => ({
    url: file.startsWith('file:') ? file : `file://${file}`,
    line: Number(line),
    column: Number(column),
  }));

function isConstructedByStep(error: Error): boolean {
  const [first] = framesOf(error);
  if (first === undefined || first.url.includes('/node_modules/')) return false;
  try {
    const source = readFileSync(fileURLToPath(first.url), 'utf8');
    const there = source.split('\n')[first.line - 1]?.slice(first.column - 1) ?? '';
    return construction.test(there);
  } catch {
    return false;
  }
}

/** True if the stack contains code from outside the kit. Asynchronous GDAL errors have no stack: then true if the kit does not export the step. */
async function involvesForeignCode(error: Error, step: AnyStep): Promise<boolean> {
  const isKitCode = ({ url }: { url: string }) =>
    url.startsWith(kit.href) ? !url.startsWith(fork.href) : url.includes('/node_modules/');
  const stack = framesOf(error);
  if (stack.length > 0) return !stack.every(isKitCode);
  const kitExports: readonly unknown[] = Object.values(await import('../../steps/index.ts'));
  return !kitExports.includes(step);
}

/** Reads every pixel and every feature. Returns the first error, or null. */
function errorOfReading(inputs: readonly Opened[]): unknown {
  try {
    for (const dataset of inputs.flatMap(({ datasets }) => datasets)) {
      dataset.bands.forEach((band) => void gdal.checksumImage(band));
      dataset.layers.forEach((layer) => layer.features.forEach(() => {}));
    }
    return null;
  } catch (error) {
    return error;
  }
}
