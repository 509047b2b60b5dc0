import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { KitError } from '../../contract/index.ts';

export const decisions = ['approve', 'reject', 'expire'] as const;

export interface DemoOptions {
  /** The user's own rasters and folders of rasters, absolute; empty for a synthetic scene. */
  readonly inputs: readonly string[];
  readonly stepId: string;
  /** As given: the step's declaration says what they become. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly outDir: string;
  readonly decision: (typeof decisions)[number];
}

const usage =
  'usage: npm run demo -- [--input PATH]... [--step ID] [--param name=value]... [--out DIR] [--decision approve|reject|expire]';

function wrong(message: string): KitError {
  return new KitError('bad_arguments', `${message}\n${usage}`);
}

/** Reads the command line. Paths are relative to where the user called npm. Throws `KitError`. */
export function readDemoOptions(args: readonly string[], cwd: string): DemoOptions {
  const { values } = parse(args);
  const decision = decisions.find((known) => known === values.decision);
  if (!decision) throw wrong(`--decision ${values.decision} must be one of ${decisions.join(', ')}`);
  const parameters: Record<string, string> = {};
  for (const pair of values.param) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined) throw wrong(`--param ${pair} must be name=value`);
    if (name in parameters) throw wrong(`--param ${name} is given twice`);
    parameters[name] = value;
  }
  return {
    inputs: values.input.map((path) => resolve(cwd, path)),
    stepId: values.step,
    parameters,
    outDir: resolve(cwd, values.out),
    decision,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        input: { type: 'string', multiple: true, default: [] },
        step: { type: 'string', default: 'ndvi' },
        param: { type: 'string', multiple: true, default: [] },
        out: { type: 'string', default: 'data/demo' },
        decision: { type: 'string', default: 'approve' },
      },
    });
  } catch (error) {
    throw wrong((error as Error).message);
  }
}
