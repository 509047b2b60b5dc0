import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { KitError } from '../contract/kit-error.ts';
import type { ItemBand } from '../raster/band-reader.ts';
import type { CogOptions } from '../raster/cog.ts';
import { Defect } from '../child/in-child.ts';
import { isTransient } from '../files/index.ts';
import type { Features } from '../raster/features.ts';
import type { Scene } from '../raster/scene.ts';
import type { Area } from './area.ts';
import { inContainer } from './container.ts';
import { programNotFound } from './programs.ts';
import { inputsOf, outputsOf, type AnyStep, type BandDeclaration, type StepJob } from './step.ts';

/** A program that does a step's work. */
export interface Command {
  /**
   * The program and its arguments; no shell reads them. In an argument stand for themselves: `{input}` the one raster (where there are several inputs, the name of each stands for its one file),
   * `{output}` where the output goes (the first of several, whose names stand for the others), `{work}` a folder for temporary files, `{job}` a file of JSON with all of that and the
   * parameters, `{code}` the folder of `code`, and `{name}` the parameter of that name, of an area a file of GeoJSON. `{inputs}`, alone, is an argument for each raster.
   */
  readonly argv: readonly [string, ...string[]];
  /** Module beside which the program's own scripts lie: `import.meta.url`. Default: none. An image has its own. */
  readonly code?: string | undefined;
  /**
   * Container image in which the program runs, with everything that it needs; name it by its digest (`...@sha256:...`). The app needs a container engine
   * (`CONTAINER_ENGINE`) that has the image. Default: the program is of the machine.
   */
  readonly image?: string;
  /**
   * The program leaves a raster of any format that the app reads, and the app makes the step's first output of it, a Cloud Optimized GeoTIFF that
   * says what made it. Default: the program writes what is delivered.
   */
  readonly cog?: CogOptions;
  /**
   * Format in which the program reports its progress. `json`: lines such as `{"progress": 0.12, "note": "..."}` on
   * descriptor 3, in an image on stdout. `percent`: `12 %` or GDAL's `0...10...20` on stdout. Default `json`.
   */
  readonly progress?: 'json' | 'percent';
  /** Declared bands of the output, which the program reads from the job file. Default: none. */
  readonly outputBands?: readonly BandDeclaration[];
  /** Facts for the Python program of `definePixelStep`. Default: none. */
  readonly pixels?: PixelProgram;
}

/** A step's `run`, and what it was made of. */
export type CommandRun = ((job: StepJob<never>) => Promise<void>) & Pick<Command, 'argv' | 'image' | 'progress'>;

export interface CommandFile {
  readonly path: string;
  /** From the first on: every name that the band goes by. Empty for features. */
  readonly bands: readonly {
    readonly names: readonly string[];
    /** Metadata from the catalog item; null if there is none. */
    readonly ofItem: ItemBand | null;
  }[];
}

/** Facts for a program that computes pixels. */
export interface PixelProgram {
  /** The input of each band parameter that names one. */
  readonly of: Readonly<Record<string, string>>;
  /** True if it takes stored numbers. */
  readonly isStored: boolean;
}

/** The content of `{job}`, for the program. */
export interface CommandJob {
  /** The files of the first input with rasters. */
  readonly inputs: readonly CommandFile[];
  /** The files of each input, by its name. */
  readonly namedInputs: Readonly<Record<string, readonly CommandFile[]>>;
  /** Path of the first output. */
  readonly output: string;
  /** Path of each output, by its name. */
  readonly outputs: Readonly<Record<string, string>>;
  /** Declared bands of the output. Empty if `command` has no `outputBands`. */
  readonly outputBands: readonly BandDeclaration[];
  /** Facts for the Python program of `definePixelStep`. Absent for other programs. */
  readonly pixels?: PixelProgram;
  readonly workFolder: string;
  readonly parameters: Readonly<Record<string, string | number | boolean | Area>>;
  /** For the output's own metadata: what made it. */
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Content of `error.json`. A program writes it into its work folder before it ends with a code other than 0. The user reads
 * `message`.
 */
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
/** Placeholders with the same meaning in every command. */
export const reserved = new Set(['input', 'inputs', 'output', 'work', 'job', 'code']);
const maxErrorCharacters = 1_000_000;
const errorFile = 'error.json';
const jobFile = 'job.json';
const graceMs = 1_000;
/** Share of the progress bar at which the program is done. */
const cogFrom = 0.6;
const tailCharacters = 2_000;
/** Holds the helper for programs in Python. */
const pythonFolder = fileURLToPath(new URL('./python', import.meta.url));

/** Paths of the files that a program works with. */
interface Place {
  /** Path of a raster or features that the step was given. */
  input(path: string): string;
  output(path: string): string;
  readonly work: string;
  readonly code: string;
  /** Makes a file in the folder for temporary files, and says where it is. */
  write(name: string, text: string): string;
}

/**
 * The `run` of a step that a program does, in any language. It runs confined or not at all. Rejects with what `error.json`
 * says; with a defect where the program ends badly without it; with the signal's reason after a cancel.
 */
export function command({ argv, code, image, cog, progress = 'json', outputBands = [], pixels }: Command): CommandRun {
  const declared = { outputBands, ...(pixels && { pixels }) };
  if (image !== undefined && code !== undefined) throw new Error(`${image}: an image has its own code: leave out code`);
  const run = async (job: StepJob<never>) => {
    if (process.env['CONFINED'] !== 'yes')
      throw new KitError(
        'not_confined',
        'this step runs a program, and the app does that only where bubblewrap confines it, which it does not here: the log of its start says why',
        { status: 500 },
      );
    const run = (of: StepJob<never>) =>
      image === undefined
        ? runHere(of, { argv, code, progress, ...declared })
        : runInImage(of, { argv, ...declared }, cog ? cogFrom : 1);
    await (cog ? thenCog(job, cog, run) : run(job));
  };
  return Object.assign(run, { argv, progress, ...(image !== undefined && { image }) });
}

/** Lets the program write into the work folder, and makes the output of it. */
async function thenCog(
  job: StepJob<never>,
  options: CogOptions,
  run: (job: StepJob<never>) => Promise<void>,
): Promise<void> {
  const { raster, share, outputPath, workFolder } = job;
  const made = join(workFolder, basename(outputPath));
  const outputs = Object.fromEntries(
    Object.entries(job.outputs).map(([name, path]) => [name, path === outputPath ? made : path]),
  );
  await run({ ...job, outputs, outputPath: made, progress: share(0, cogFrom).progress });
  const dataset = raster.openRaster(made);
  raster.writeCog(dataset, outputPath, options, share(cogFrom, 1));
  dataset.close();
}

async function runHere(job: StepJob<never>, { argv, code, progress, ...declared }: Command): Promise<void> {
  const write = (name: string, text: string) => {
    const path = join(job.workFolder, name);
    writeFileSync(path, text);
    return path;
  };
  const same = (path: string) => path;
  const place: Place = {
    input: same,
    output: same,
    work: job.workFolder,
    code: code === undefined ? '' : dirname(fileURLToPath(code)),
    write,
  };
  const [program = '', ...args] = filledIn(argv, job, place, declared);
  const child = spawn(program, args, {
    cwd: job.workFolder,
    env: {
      ...process.env,
      PYTHONPATH: [pythonFolder, process.env['PYTHONPATH']].filter(Boolean).join(delimiter),
      PYTHONDONTWRITEBYTECODE: '1',
      // For the kit's helper in Python: the descriptor below.
      MARKETPLACE_PROGRESS: '3',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const { how, errors } = await ended(child, program, job, progress);
  conclude(program, how, errors, join(job.workFolder, errorFile));
}

/** The child has no engine: the host runs the container, and gives back where its folders are. */
async function runInImage(job: StepJob<never>, { argv, ...declared }: Command, upTo: number): Promise<void> {
  const files: Record<string, string> = {};
  const write = (name: string, text: string) => {
    files[name] = text;
    return `${inContainer.work}/${name}`;
  };
  const place: Place = {
    input: (path) => job.container.pathOf(path),
    output: (path) => `${inContainer.outputs}/${basename(path)}`,
    work: inContainer.work,
    code: '',
    write,
  };
  const { exitCode, errors, folder } = await job.container.run(filledIn(argv, job, place, declared), files, upTo);
  conclude(argv[0], exitCode ?? 'a signal', errors, join(folder, 'work', errorFile));
  for (const path of Object.values(job.outputs)) {
    const made = join(folder, 'output', basename(path));
    if (!existsSync(made) || !lstatSync(made).isFile()) continue;
    copyFileSync(made, path);
    // It has the container's mode, which may forbid what follows.
    chmodSync(path, 0o600);
  }
}

/** Throws where a program has not ended well: what `error.json` says, or a defect. */
function conclude(program: string, how: number | string, errors: string, told: string): void {
  if (how === 0) return;
  const read =
    existsSync(told) && lstatSync(told).isFile()
      ? refusal.safeParse(parsed(readFileSync(told, 'utf8').slice(0, maxErrorCharacters)))
      : null;
  if (read?.success) throw new KitError(read.data.code, read.data.message, { status: 422 });
  throw new Defect(
    new Error(`${program} ended with ${typeof how === 'number' ? `code ${how}` : how}: ${errors.trim()}`),
  );
}

// A function of `command` has more fields than the type of a step's.
const runOf = (step: AnyStep) => Reflect.get(step, 'run') as Partial<CommandRun>;

/** True if a program does the step. */
export const isCommand = (step: AnyStep): boolean => runOf(step).argv !== undefined;

/** Program of the machine that does the step; null where none does, or one in a container. */
export function programOf(step: AnyStep): string | null {
  const { argv, image } = runOf(step);
  return argv === undefined || image !== undefined ? null : argv[0];
}

/** Declared facts of the container in which a program does the step; null if none does. */
export function containerOf(step: AnyStep): { readonly image: string; readonly progress: Command['progress'] } | null {
  const { image, progress } = runOf(step);
  return image === undefined ? null : { image, progress };
}

/** Names of parameters that a command's arguments stand for. */
export function namedInCommand(step: AnyStep): string[] {
  const { argv = [] } = runOf(step);
  const known = new Set([
    ...reserved,
    ...outputsOf(step).map(([name]) => name),
    ...inputsOf(step).map(([name]) => name),
  ]);
  return argv.flatMap((argument) =>
    [...argument.matchAll(placeholder)].flatMap(([, name = '']) => (known.has(name) ? [] : [name])),
  );
}

const filesOf = (input: Scene | Features, place: Place): CommandFile[] =>
  input.datasets.map((dataset) => ({
    path: place.input(dataset.description),
    bands:
      'bands' in input
        ? input.bands.filter((band) => band.dataset === dataset).map(({ names, ofItem }) => ({ names, ofItem }))
        : [],
  }));

function describe(
  { scene, inputs, parameters, outputPath, outputs, metadata }: StepJob<never>,
  place: Place,
  { outputBands = [], pixels }: Pick<Command, 'outputBands' | 'pixels'>,
): CommandJob {
  return {
    inputs: filesOf(scene, place),
    namedInputs: Object.fromEntries(
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- an optional input may be absent
      Object.entries(inputs).flatMap(([name, input]) => (input ? [[name, filesOf(input, place)]] : [])),
    ),
    output: place.output(outputPath),
    outputs: Object.fromEntries(Object.entries(outputs).map(([name, path]) => [name, place.output(path)])),
    outputBands,
    ...(pixels && { pixels }),
    workFolder: place.work,
    parameters,
    metadata,
  };
}

/** The arguments with all that they stand for; writes the job's file. */
function filledIn(
  argv: readonly string[],
  job: StepJob<never>,
  place: Place,
  declared: Pick<Command, 'outputBands' | 'pixels'>,
): string[] {
  const described = describe(job, place, declared);
  const path = place.write(jobFile, JSON.stringify(described));
  return argv.flatMap((argument) => filled(argument, described, { job: path, code: place.code }, place));
}

function filled(
  argument: string,
  { inputs, namedInputs, output, outputs, workFolder, parameters }: CommandJob,
  paths: { readonly job: string; readonly code: string },
  place: Place,
): string[] {
  if (argument === '{inputs}') return inputs.map(({ path }) => path);
  const text = argument.replace(placeholder, (_, name: string) => {
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
    if (typeof value === 'object') return place.write(`${name}.geojson`, asFeature(value));
    if (typeof value === 'string' && value.includes('\0'))
      throw new KitError('invalid_parameters', `${name} must not hold a character of code 0`, { status: 422 });
    return String(value);
  });
  // A text that a user gives is no option of the program.
  const texts = [...argument.matchAll(placeholder)].flatMap(([, name = '']) =>
    typeof parameters[name] === 'string' ? [name] : [],
  );
  if (texts.length > 0 && text.startsWith('-') && !argument.startsWith('-'))
    throw new KitError('invalid_parameters', `${[...new Set(texts)].join(' and ')} must not begin with -`, {
      status: 422,
    });
  return [text];
}

/** For programs that take a file. */
function asFeature(geometry: Area): string {
  return JSON.stringify({
    type: 'FeatureCollection',
    features: [{ type: 'Feature', properties: {}, geometry }],
  });
}

async function ended(
  child: ChildProcess,
  program: string,
  { signal, progress }: StepJob<never>,
  way: Command['progress'],
): Promise<{ how: number | string; errors: string }> {
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
  // A pipe, as it was started.
  createInterface({ input: child.stdio[3] as Readable }).on('line', (line) => {
    const told = progressOf(line);
    if (told) progress(told.progress, told.note);
  });
  const stop = () => {
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), graceMs).unref();
  };
  signal.addEventListener('abort', stop, { once: true });
  const how = await new Promise<number | string>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? programNotFound(program) : isTransient(error) ? error : new Defect(error)),
    );
    child.once('close', (exitCode, killedBy) => resolve(killedBy ?? exitCode ?? 0));
  }).finally(() => signal.removeEventListener('abort', stop));
  signal.throwIfAborted();
  return { how, errors: stderr };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads the progress in a line of a program's output; null if there is none. */
export function progressOf(line: string): { readonly progress: number; readonly note?: string | undefined } | null {
  if (!line.startsWith('{')) return null;
  return progressLine.safeParse(parsed(line)).data ?? null;
}

/** Reads `12 %`, `12.5%` and GDAL's `0...10...20...`, in pieces as they come. */
export function percentOf(): (text: string) => number | undefined {
  let rest = '';
  return (text) => {
    rest = (rest + text).slice(-200);
    const found = [...rest.matchAll(/(\d{1,3}(?:\.\d+)?)(?=\s*%|\.\.\.|\s+-\s+done)/g)].at(-1)?.[1];
    const value = found === undefined ? NaN : Number(found);
    return value <= 100 ? value / 100 : undefined;
  };
}
