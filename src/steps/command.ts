import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { KitError } from '../contract/kit-error.ts';
import { Defect, isOfTheWorld } from '../raster/failure-kind.ts';
import type { Features } from '../raster/features.ts';
import type { Scene } from '../raster/scene.ts';
import type { Area } from './area.ts';
import { inputsOf, outputsOf, type AnyStep, type StepJob } from './step.ts';

/** A program that does a step's work. */
export interface Command {
  /**
   * The program and its arguments; no shell reads them. In an argument stand for themselves: `{input}` the one raster (where there are several inputs, the name of each stands for its one file),
   * `{output}` where the output goes (the first of several, whose names stand for the others), `{work}` a folder for temporary files, `{job}` a file of JSON with all of that and the
   * parameters, `{code}` the folder of `code`, and `{name}` the parameter of that name, of an area a file of GeoJSON. `{inputs}`, alone, is an argument for each raster.
   */
  readonly argv: readonly [string, ...string[]];
  /** Module beside which the program's own scripts lie: `import.meta.url`. Default: none. */
  readonly code?: string;
  /** How the program tells how far it is: `json`, lines such as `{"progress": 0.12, "note": "..."}` on descriptor 3; `percent`, `12 %` or GDAL's `0...10...20` on stdout. Default `json`. */
  readonly progress?: 'json' | 'percent';
}

/** A step's `run`, and the arguments that it was made of. */
export type CommandRun = ((job: StepJob<never>) => Promise<void>) & { readonly argv: Command['argv'] };

export interface CommandFile {
  readonly path: string;
  /** From the first on: every name that the band goes by. Empty for features. */
  readonly bands: readonly { readonly names: readonly string[] }[];
}

/** What the program finds in `{job}`. */
export interface CommandJob {
  /** The files of the first input with rasters. */
  readonly inputs: readonly CommandFile[];
  /** The files of each input, by its name. */
  readonly namedInputs: Readonly<Record<string, readonly CommandFile[]>>;
  /** Where the first output goes. */
  readonly output: string;
  /** Where each goes, by its name. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly workFolder: string;
  readonly parameters: Readonly<Record<string, string | number | boolean | Area>>;
  /** For the output's own metadata: what made it. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** What a program writes as `error.json` into its work folder before it ends with another code than 0: the user reads `message`. */
const refusal = z.object({
  message: z
    .string()
    .min(1)
    .transform((text) => text.slice(0, 2_000)),
  code: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/)
    .default('step_refused'),
});

const progressLine = z.object({ progress: z.number().min(0).max(1), note: z.string().max(500).optional() });
const placeholder = /\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
/** What stands for itself in every command. */
export const reserved = new Set(['input', 'inputs', 'output', 'work', 'job', 'code']);
const mostErrorCharacters = 1_000_000;
const errorFile = 'error.json';
const jobFile = 'job.json';
const graceMs = 1_000;
const tailCharacters = 2_000;
/** Holds the helper for programs in Python. */
const pythonFolder = fileURLToPath(new URL('./python', import.meta.url));

/**
 * The `run` of a step that a program does, in any language. It runs confined or not at all. Rejects with what `error.json`
 * says; with a defect where the program ends badly without it; with the signal's reason after a cancel.
 */
export function command({ argv, code, progress = 'json' }: Command): CommandRun {
  const run = async (job: StepJob<never>) => {
    if (process.env['CONFINED'] !== 'yes')
      throw new KitError(
        'not_confined',
        'this step runs a program, and the app does that only where bubblewrap confines it: install bubblewrap',
        { status: 500 },
      );
    const described = describe(job);
    const path = join(job.workFolder, jobFile);
    writeFileSync(path, JSON.stringify(described));
    const [program = '', ...args] = argv.flatMap((argument) =>
      filled(argument, described, { job: path, code: code === undefined ? '' : dirname(fileURLToPath(code)) }),
    );
    const child = spawn(program, args, {
      cwd: job.workFolder,
      env: {
        ...process.env,
        PYTHONPATH: [pythonFolder, process.env['PYTHONPATH']].filter(Boolean).join(delimiter),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    await ended(child, program, job, progress);
  };
  return Object.assign(run, { argv });
}

/** Whether a program does the step. */
export const isCommand = (step: AnyStep): boolean =>
  (Reflect.get(step, 'run') as Partial<CommandRun>).argv !== undefined;

/** Names of parameters that a command's arguments stand for. */
export function namedInCommand(step: AnyStep): string[] {
  const { argv = [] } = Reflect.get(step, 'run') as Partial<CommandRun>;
  const known = new Set([
    ...reserved,
    ...outputsOf(step).map(([name]) => name),
    ...inputsOf(step).map(([name]) => name),
  ]);
  return argv.flatMap((argument) =>
    [...argument.matchAll(placeholder)].flatMap(([, name = '']) => (known.has(name) ? [] : [name])),
  );
}

const filesOf = (input: Scene | Features): CommandFile[] =>
  input.datasets.map((dataset) => ({
    path: dataset.description,
    bands:
      'bands' in input ? input.bands.filter((band) => band.dataset === dataset).map(({ names }) => ({ names })) : [],
  }));

function describe({
  scene,
  inputs,
  parameters,
  outputPath,
  outputs,
  workFolder,
  metadata,
}: StepJob<never>): CommandJob {
  return {
    inputs: filesOf(scene),
    namedInputs: Object.fromEntries(
      Object.entries(inputs).flatMap(([name, input]) => (input ? [[name, filesOf(input)]] : [])),
    ),
    output: outputPath,
    outputs,
    workFolder,
    parameters,
    metadata,
  };
}

function filled(
  argument: string,
  { inputs, namedInputs, output, outputs, workFolder, parameters }: CommandJob,
  paths: { readonly job: string; readonly code: string },
): string[] {
  if (argument === '{inputs}') return inputs.map(({ path }) => path);
  const filledIn = argument.replace(placeholder, (_, name: string) => {
    const files = name === 'input' ? inputs : Object.hasOwn(namedInputs, name) ? namedInputs[name]! : null;
    if (files) {
      if (files.length === 1) return files[0]!.path;
      throw new KitError('not_one_raster', `the step takes one file as ${name}, the input has ${files.length}`, {
        status: 422,
      });
    }
    const known: Readonly<Record<string, string>> = { ...outputs, output, work: workFolder, ...paths };
    const value = Object.hasOwn(known, name) ? known[name] : parameters[name];
    if (value === undefined) throw new Defect(new Error(`the command names {${name}}, and there is no such parameter`));
    if (typeof value === 'object') return areaFile(join(workFolder, `${name}.geojson`), value);
    if (typeof value === 'string' && value.includes('\0'))
      throw new KitError('invalid_parameters', `${name} must not hold a character of code 0`, { status: 422 });
    return String(value);
  });
  // A text that a user gives is no option of the program.
  const texts = [...argument.matchAll(placeholder)].flatMap(([, name = '']) =>
    typeof parameters[name] === 'string' ? [name] : [],
  );
  if (texts.length > 0 && filledIn.startsWith('-') && !argument.startsWith('-'))
    throw new KitError('invalid_parameters', `${[...new Set(texts)].join(' and ')} must not begin with -`, {
      status: 422,
    });
  return [filledIn];
}

/** For programs that take a file. */
function areaFile(path: string, geometry: Area): string {
  const feature = { type: 'Feature', properties: {}, geometry };
  writeFileSync(path, JSON.stringify({ type: 'FeatureCollection', features: [feature] }));
  return path;
}

async function ended(
  child: ChildProcess,
  program: string,
  { signal, progress, workFolder }: StepJob<never>,
  way: Command['progress'],
): Promise<void> {
  let stderr = '';
  const percent = way === 'percent' ? percentOf() : null;
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const fraction = percent?.(text);
    if (fraction !== undefined) progress(fraction);
    if (percent === null) process.stdout.write(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-tailCharacters);
    process.stderr.write(text);
  });
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
    const read = progressLine.safeParse(parsed(line));
    if (read.success) progress(read.data.progress, read.data.note);
  });
  const stop = () => {
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), graceMs).unref();
  };
  signal.addEventListener('abort', stop, { once: true });
  const how = await new Promise<number | string>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new KitError('program_not_found', `the program ${program} is not installed where the app runs`, {
              status: 500,
            })
          : isOfTheWorld(error)
            ? error
            : new Defect(error),
      ),
    );
    child.once('close', (exitCode, killedBy) => resolve(killedBy ?? exitCode ?? 0));
  }).finally(() => signal.removeEventListener('abort', stop));
  signal.throwIfAborted();
  if (how === 0) return;
  const told = join(workFolder, errorFile);
  const read = existsSync(told)
    ? refusal.safeParse(parsed(readFileSync(told, 'utf8').slice(0, mostErrorCharacters)))
    : null;
  if (read?.success) throw new KitError(read.data.code, read.data.message, { status: 422 });
  throw new Defect(
    new Error(`${program} ended with ${typeof how === 'number' ? `code ${how}` : how}: ${stderr.trim()}`),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads `12 %`, `12.5%` and GDAL's `0...10...20...`, in pieces as they come. */
function percentOf(): (text: string) => number | undefined {
  let rest = '';
  return (text) => {
    rest = (rest + text).slice(-200);
    const found = [...rest.matchAll(/(\d{1,3}(?:\.\d+)?)(?=\s*%|\.\.\.|\s+-\s+done)/g)].at(-1)?.[1];
    const value = found === undefined ? NaN : Number(found);
    return value <= 100 ? value / 100 : undefined;
  };
}
