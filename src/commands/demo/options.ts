import type { Permission } from '../../contract/index.ts';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { wrongArguments, type Given } from '../arguments.ts';
import { appPermissions } from '../permissions.ts';
import { scriptCommand } from '../../files/index.ts';

export const decisions = ['approve', 'reject', 'expire'] as const;

export interface DemoOptions {
  /** The user's own rasters and folders of rasters, absolute; empty for a synthetic scene. */
  readonly inputs: readonly string[];
  /** By the names of a step that has several inputs, absolute; of one kind with `inputs`, not both. */
  readonly namedInputs: Readonly<Record<string, string>>;
  /** Null for the app's first. */
  readonly stepId: string | null;
  /** Values as given. The step's declaration decides their types. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly outDir: string;
  readonly decision: (typeof decisions)[number];
  /** Permissions of the app's key; null for those that the app declares. */
  readonly permissions: readonly Permission[];
}

export const usage = `usage: ${scriptCommand('demo')} [options]: the whole flow on this machine, from the launch to the delivered file

  --input PATH       Raster, or folder of a scene's bands; repeatable (default: an item of the demo catalog).
                     For a step with several inputs: NAME=PATH for each of them
  --step ID          Step to run (default: the app's first step)
  --param name=value Parameter of the step; repeatable
  --out DIR          Folder of the result and its preview (default: data/demo)
  --permissions LIST Permissions of the app's key, with commas (default: external_app)
  --decision WORD    The user's decision: approve, reject or expire (default: approve)

Exits 0 only if the platform's file is COMPLETED and equal to the step's output, and if the delivered item is dated and placed as its input.
With --decision reject or expire: 0 only if the run ends so and uploads nothing.`;

const wrong = (message: string) => wrongArguments(message, usage);

const none: string[] = [];

export const demoArguments = {
  options: {
    input: { type: 'string', multiple: true, default: none },
    step: { type: 'string' },
    param: { type: 'string', multiple: true, default: none },
    out: { type: 'string', default: 'data/demo' },
    decision: { type: 'string', default: 'approve' },
    permissions: { type: 'string' },
  },
} as const;

/** Reads the values of a command line. Paths are relative to `cwd`. Throws `KitError`. */
export function readDemoOptions({ values }: Given<typeof demoArguments>, cwd: string): DemoOptions {
  const decision = decisions.find((known) => known === values.decision);
  if (!decision) throw wrong(`--decision ${values.decision} must be one of ${decisions.join(', ')}`);
  const parameters: Record<string, string> = {};
  for (const pair of values.param) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined) throw wrong(`--param ${pair} must be name=value`);
    if (name in parameters) throw wrong(`--param ${name} comes twice; give it once`);
    parameters[name] = value;
  }
  const named = values.input.flatMap((input) => {
    const [, name, path] = /^([a-z][A-Za-z0-9_]{0,39})=(.+)$/s.exec(input) ?? [];
    return name !== undefined && path !== undefined && !existsSync(resolve(cwd, input))
      ? [[name, resolve(cwd, path)] as const]
      : [];
  });
  if (named.length > 0 && named.length < values.input.length)
    throw wrong('give each --input as NAME=PATH, or none of them');
  const [twice] = named.filter(([name], i) => named.findIndex(([other]) => other === name) < i);
  if (twice) throw wrong(`--input ${twice[0]} comes twice; give it once`);
  return {
    inputs: named.length > 0 ? [] : values.input.map((path) => resolve(cwd, path)),
    namedInputs: Object.fromEntries(named),
    stepId: values.step ?? null,
    parameters,
    outDir: resolve(cwd, values.out),
    decision,
    permissions: appPermissions(values.permissions, usage),
  };
}
