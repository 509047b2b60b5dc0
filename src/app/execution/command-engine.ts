import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as z from 'zod';
import { codeOf, isRecord, kitFolder } from '../../files/index.ts';
import { plainText } from '../../child/index.ts';
import { EngineError, engineStates, type EngineJob, type EngineState, type StepEngine } from './step-engine.ts';

const argv = z.array(z.string().min(1)).min(1);
const pattern = z.string().refine((source) => isPattern(source), 'must be a regular expression');

/** The commands of an engine with a command line. docs/executors.md describes the placeholders. */
export const commandTemplates = z.strictObject({
  /** For editors. */
  $schema: z.string().optional(),
  title: z.string().min(1).max(40),
  submit: argv,
  /** Standard input of `submit`. Only here, and in the environment of `submit`, is the job's token. Default: none. */
  input: z.unknown().optional(),
  state: argv,
  /** Meaning of the output of `state`: the first pattern that matches counts. Without a match, the engine does not know the job. */
  states: z.partialRecord(z.enum(engineStates), pattern),
  cancel: argv,
  /** Default: the engine keeps no output of jobs. */
  logs: argv.optional(),
  /** The command that a job runs. Default: this checkout or image's own `exec-step`. */
  run: argv.optional(),
  /** Variables of the app's own environment that the commands get, besides PATH, HOME, USER and LANG. */
  environment: z.array(z.string().regex(/^[A-Z][A-Z0-9_]*$/)).default([]),
  pollSeconds: z.number().min(0.1).max(600).default(5),
});
export type CommandTemplates = z.input<typeof commandTemplates>;
type ParsedTemplates = z.output<typeof commandTemplates>;

const always = ['PATH', 'HOME', 'USER', 'LANG'];
const answerWithinMs = 60_000;
const mostBytes = 1024 * 1024;
const mib = 1024 ** 2;
/** Placeholders that only the standard input of `submit` may have, because command lines are public. */
const secretPlaceholder = /\{token\}/;

/** Describes a placeholder that is not allowed where it is. Null if there is none. */
export function placeholderProblem({
  submit,
  input,
  state,
  cancel,
  logs = [],
  run = [],
}: ParsedTemplates): string | null {
  const commands = [submit, state, cancel, logs, run].flat().join(' ');
  if (secretPlaceholder.test(commands))
    return '{token} may stand in `input` only: everybody on a machine can read its command lines';
  const names = [...`${commands} ${JSON.stringify(input ?? '')}`.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const unknown = names.find((name) => name !== 'token' && !placeholders.has(name));
  return unknown === undefined
    ? null
    : `there is no placeholder {${unknown}}; there are {${[...placeholders].join('}, {')}}`;
}

const placeholders = new Set(['name', 'memoryMiB', 'memoryBytes', 'cores', 'minutes', 'seconds', 'diskMiB', 'label', 'command', 'url']); // oxfmt-ignore

/** An engine with a command line, such as Slurm. */
export class CommandEngine implements StepEngine {
  readonly title: string;
  readonly pollMs: number;
  readonly #templates: ParsedTemplates;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(templates: CommandTemplates, environment: NodeJS.ProcessEnv = process.env) {
    this.#templates = commandTemplates.parse(templates);
    this.title = this.#templates.title;
    this.pollMs = this.#templates.pollSeconds * 1_000;
    const names = [...always, ...this.#templates.environment];
    this.#environment = Object.fromEntries(
      names.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])),
    );
  }

  async submit(job: EngineJob): Promise<void> {
    const { submit, input, run = ownCommand() } = this.#templates;
    const { STEP_JOB_URL: url, STEP_JOB_TOKEN: token } = job.environment;
    const values: Record<string, string | null> = {
      name: job.name,
      memoryMiB: String(Math.ceil(job.memoryBytes / mib)),
      memoryBytes: String(job.memoryBytes),
      cores: String(job.cores),
      minutes: String(Math.ceil(job.timeoutMs / 60_000)),
      seconds: String(Math.ceil(job.timeoutMs / 1_000)),
      diskMiB: String(Math.ceil(job.diskBytes / mib)),
      label: job.label,
      command: run.map(quoted).join(' '),
      url,
    };
    const text = input === undefined ? '' : asText(filledDeep(input, { ...values, token }));
    const { code, output } = await this.#run(filledAll(submit, values), { ...job.environment }, text);
    if (code !== 0) throw new EngineError(`submit ended with ${code}: ${lastLines(withoutToken(output, token))}`);
  }

  async state(name: string): Promise<EngineState> {
    const { code, output } = await this.#run(filledAll(this.#templates.state, { name }));
    for (const state of engineStates) {
      const source = this.#templates.states[state];
      if (source !== undefined && new RegExp(source, 'm').test(output)) return state;
    }
    // An engine that does not answer has not lost its jobs.
    if (code !== 0) throw new EngineError(`state ended with ${code}: ${lastLines(output)}`);
    return 'unknown';
  }

  async cancel(name: string): Promise<void> {
    const { code, output } = await this.#run(filledAll(this.#templates.cancel, { name }));
    if (code !== 0) throw new EngineError(`cancel ended with ${code}: ${lastLines(output)}`);
  }

  async logs(name: string): Promise<string> {
    const { logs } = this.#templates;
    return logs === undefined ? '' : lastLines((await this.#run(filledAll(logs, { name }))).output, 2_000);
  }

  /** Runs a command, but not with the app's environment, which holds secrets. Rejects with `EngineError` if it cannot start or does not end. */
  #run(
    [program = '', ...args]: readonly string[],
    more: Readonly<Record<string, string>> = {},
    input = '',
  ): Promise<{ code: number | null; output: string }> {
    return new Promise((resolve, reject) => {
      // The command gets its own process group, so that everything it has started can be ended together.
      const child = spawn(program, args, {
        env: { ...this.#environment, ...more },
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: true,
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          if (output.length < mostBytes) output += text;
        });
      child.stdin.on('error', () => {}).end(input);
      const late = setTimeout(() => {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
        reject(new EngineError(`${program} did not end within ${answerWithinMs / 1_000} s`));
      }, answerWithinMs);
      child.once('error', (error) => {
        clearTimeout(late);
        reject(new EngineError(`${program} could not start (${codeOf(error) ?? 'unknown'})`));
      });
      child.once('close', (code) => {
        clearTimeout(late);
        resolve({ code, output });
      });
    });
  }
}

/** An image has no `bin`. */
function ownCommand(): string[] {
  const bin = kitFolder('bin/marketplace-app-kit.mjs');
  if (existsSync(bin)) return [process.execPath, bin, 'exec-step'];
  return [process.execPath, '--import', kitFolder('scripts/preload.mjs'), kitFolder('src/commands/exec-step.ts')];
}

/** For a shell. */
const quoted = (argument: string) =>
  /^[\w./:@=-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;

const asText = (input: unknown) => (typeof input === 'string' ? input : JSON.stringify(input));

function filled(template: string, values: Readonly<Record<string, string | null>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** Fills the texts of a document, which is written as JSON afterwards. */
function filledDeep(template: unknown, values: Readonly<Record<string, string | null>>): unknown {
  if (typeof template === 'string') return filled(template, values);
  if (Array.isArray(template)) return template.map((entry) => filledDeep(entry, values));
  if (!isRecord(template)) return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, filledDeep(value, values)]));
}

/** Leaves out arguments with the label of a step that has none. */
function filledAll(template: readonly string[], values: Readonly<Record<string, string | null>>): string[] {
  return template
    .filter((argument) => values['label'] !== null || !argument.includes('{label}'))
    .map((argument) => filled(argument, values));
}

/** A command may print its input or environment, also in base64. */
function withoutToken(output: string, token: string): string {
  const encoded = Buffer.from(token).toString('base64').replace(/=+$/, '');
  return output.replaceAll(token, '[token]').replaceAll(encoded, '[token]');
}

/** The end of a command's output, on one line. */
const lastLines = (output: string, most = 300) => plainText(output.trim().slice(-most));

function isPattern(source: string): boolean {
  try {
    return new RegExp(source, 'm') instanceof RegExp;
  } catch {
    return false;
  }
}
