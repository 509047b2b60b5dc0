import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as z from 'zod';
import { isLoopbackName, KitError } from '../../contract/index.ts';
import { messageOf, scratchFolder } from '../../files/index.ts';
import { faultFields } from '../../sandbox/call/fault.ts';
import { sandboxControl } from '../../testing/sandbox-control.ts';
import { sandboxCall, type SandboxAddress } from '../../testing/sandbox-call.ts';

/** The sandbox and the app that the tools work on. */
export interface ToolPlace {
  readonly sandbox: SandboxAddress;
  /** Starts the app under test, for `certify`; null if nobody named a command. */
  readonly start: string | null;
  /** Launch address of the app under test. */
  readonly launchUrl: string | null;
  /** Runs a command of the kit, and returns what it printed. */
  readonly runCommand: (args: readonly string[], env: Readonly<Record<string, string>>) => Promise<string>;
}

/** A tool of an assistant. */
export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Shape;
  /** Returns a JSON value or a text. Throws `KitError` with words for the assistant. */
  readonly run: (input: z.output<z.ZodObject<Shape>>, place: ToolPlace) => Promise<unknown>;
}

/** Keeps the input's type inside `run`. A list of tools has the general type. */
const defineTool = <Shape extends z.ZodRawShape>(tool: Tool<Shape>): Tool => tool as unknown as Tool;

const launchId = z.string().describe('Launch, as `launch` returned it.');
const operationId = z.string().describe('Operation, as `operations` lists it.');
/** Time for a launch of the app, ms. */
const launchMs = 30_000;
const mostCalls = 200;

/** Tools of `mcp`, by name. None returns an identity token or a key, and none reaches anything but a sandbox and an app of this machine. */
export const tools: Readonly<Record<string, Tool>> = {
  launch: defineTool({
    title: 'Launch the app',
    description:
      'Launches the app under test as the marketplace does, and opens it as a browser does. Returns the launch and the status of the app’s answer. The app then creates an operation, which waits for the user.',
    inputSchema: {
      launchUrl: z
        .string()
        .optional()
        .describe('Launch address of the app on this machine. Default: that of --launch-url.'),
      renewPolicy: z
        .enum(['extend', 'rotate'])
        .optional()
        .describe('Whether a renewal gives another token. Default: extend.'),
    },
    async run({ launchUrl, renewPolicy }, place) {
      const url = appAddress(launchUrl ?? place.launchUrl);
      const launch = await sandboxControl(place.sandbox).launch(url, renewPolicy === undefined ? {} : { renewPolicy });
      // The address holds the token, so it stays here, and no redirect is followed with it.
      const answer = await fetch(launch.launchUrl, { redirect: 'manual', signal: AbortSignal.timeout(launchMs) }).catch(
        () => {
          throw new KitError('launch_failed', 'the app does not answer at its launch address: start it first');
        },
      );
      await answer.body?.cancel();
      return { launchId: launch.launchId, appStatus: answer.status };
    },
  }),
  operations: defineTool({
    title: 'Operations of a launch',
    description: 'Lists the operations that the app of a launch has created, with name, parameters and status.',
    inputSchema: { launchId },
    run: async (input, { sandbox }) => (await sandboxCall(sandbox, 'getLaunch', input)).operations,
  }),
  approve: defineTool({
    title: 'Approve an operation',
    description: 'The user’s decision: the app may process and upload from now on.',
    inputSchema: { operationId },
    run: (input, { sandbox }) => sandboxCall(sandbox, 'approveOperation', input),
  }),
  reject: defineTool({
    title: 'Reject an operation',
    description: 'The user’s decision: the app must not process anything.',
    inputSchema: { operationId },
    run: (input, { sandbox }) => sandboxCall(sandbox, 'rejectOperation', input),
  }),
  move_clock: defineTool({
    title: 'Move the clock',
    description:
      'Moves the platform’s clock forward: of one launch, or of everything. A token lives for an hour, an operation waits for half an hour.',
    inputSchema: {
      advanceMs: z
        .int()
        .min(0)
        .max(7 * 86_400_000)
        .describe('Milliseconds.'),
      launchId: launchId.optional(),
    },
    run: async ({ advanceMs, launchId: id }, { sandbox }) => {
      await sandboxControl(sandbox).advance(advanceMs, id);
      return 'moved';
    },
  }),
  arm_fault: defineTool({
    title: 'Arm a fault',
    description:
      'Lets calls of the app fail: `endpoint` such as upload.chunk, `after` so many calls, `times`, and an `effect` such as {"status": 503}, {"reset": true} or {"dropResponse": true}.',
    inputSchema: faultFields.shape,
    run: async (fault, { sandbox }) => {
      await sandboxControl(sandbox).arm(fault);
      return 'armed';
    },
  }),
  trace: defineTool({
    title: 'Trace of a launch',
    description:
      'Lists the calls that the app has made, the latest 200, with times, statuses and what was wrong. Tokens and keys are hidden.',
    inputSchema: { launchId },
    run: async ({ launchId: id }, { sandbox }) => (await sandboxControl(sandbox).trace(id)).slice(-mostCalls),
  }),
  verdict: defineTool({
    title: 'Verdict on a launch',
    description:
      'Judges the calls of a launch so far by the seven rules: what was seen, what was expected, and what to do.',
    inputSchema: { launchId },
    run: ({ launchId: id }, { sandbox }) => sandboxControl(sandbox).verdict(id),
  }),
  test_step: defineTool({
    title: 'Test a step',
    description: 'Runs the cases of a step of the app, and the tests that every step must pass. Takes minutes.',
    inputSchema: {
      step: z
        .string()
        .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be the id of a step')
        .describe('Id of the step.'),
    },
    run: ({ step }, { runCommand }) => runCommand(['test-step', step], {}),
  }),
  certify: defineTool({
    title: 'Certify one scenario',
    description:
      'Runs one scenario of the certification, such as approve-at-once, reject or chunk-cut, on a separate sandbox. Starts the app with the command of --start.',
    inputSchema: {
      scenario: z
        .string()
        .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be the id of a scenario')
        .describe('Id of the scenario.'),
    },
    async run({ scenario }, { start, launchUrl, runCommand }) {
      if (start === null)
        throw new KitError('bad_arguments', 'start the server with --start COMMAND, which starts the app under test');
      const address = launchUrl === null ? [] : ['--launch-url', launchUrl];
      const scratch = scratchFolder('mcp');
      try {
        // The output of the app may contain tokens, so only the report is returned. Without this key, certify would print one.
        const report = join(scratch.path, 'report.json');
        const args = ['certify', '--start', start, ...address, '--scenario', scenario, '--json', report];
        await runCommand(args, { SANDBOX_API_KEY: randomBytes(24).toString('base64url') });
        const text = await readFile(report, 'utf8').catch(() => {
          throw new KitError('not_certified', 'certify ended without a report: run it in a terminal to see why');
        });
        // The kit's own certifier has written it.
        const { status, result, rules, scenarios } = JSON.parse(text) as Record<string, unknown>;
        return { status, result, rules, scenarios };
      } finally {
        await scratch.remove();
      }
    },
  }),
};

/** An address of this machine. Throws `KitError` for another one. */
function appAddress(address: string | null): string {
  if (address === null)
    throw new KitError('bad_arguments', 'name the launch address of the app, or start the server with --launch-url');
  if (!isOfThisMachine(address))
    throw new KitError(
      'bad_arguments',
      'the launch address must be http on this machine, such as http://127.0.0.1:5000/launch',
    );
  return address;
}

/** True for an http address of this machine without a password. */
export function isOfThisMachine(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, username, password } = new URL(address);
  return /^https?:$/.test(protocol) && isLoopbackName(hostname) && username === '' && password === '';
}

const mostPrinted = 100_000;
/** Time limit of a command. */
const longestMs = 20 * 60_000;

/** Runs a command by this program, and returns what it printed. A command that fails is no error: what it printed says why. */
export async function printedBy(
  cli: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> {
  // A key or a password of the assistant's own environment is none of the command's.
  const others = Object.entries(process.env).filter(([name]) => !/KEY|TOKEN|SECRET|PASSWORD/i.test(name));
  const options = { env: { ...Object.fromEntries(others), ...env }, maxBuffer: 64 * 1024 * 1024, timeout: longestMs };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [cli, ...args], options).catch(
    (error: unknown) => {
      const { stdout: out, stderr: err } = error as { stdout?: string; stderr?: string };
      if (out === undefined) throw new KitError('not_run', `the command could not be run: ${messageOf(error)}`);
      return { stdout: out, stderr: err ?? '' };
    },
  );
  let text = `${stdout}\n${stderr}`;
  for (const secret of Object.values(env)) text = text.replaceAll(secret, '[redacted]');
  return text.slice(-mostPrinted);
}
