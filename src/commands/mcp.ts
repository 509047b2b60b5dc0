import { join } from 'node:path';
import * as z from 'zod';
import { KitError } from '../contract/index.ts';
import { kitRoot, kitVersion, messageOf } from '../files/index.ts';
import { readSecret } from '../sandbox/config.ts';
import { wrongArguments } from './arguments.ts';
import { defineCommand, onInterrupt } from './command.ts';
import { isOfThisMachine, printedBy, tools, type ToolPlace } from './mcp/tools.ts';

const usage = `usage: marketplace-app-kit mcp [options]: tools for an assistant (Model Context Protocol, by standard input and output)

  --sandbox URL    A sandbox on this machine (default: http://127.0.0.1:4010)
  --launch-url URL Launch address of the app under test, on this machine
  --start COMMAND  Starts the app under test, for the tool certify

The tools launch the app, approve and reject, move the clock, arm faults, read trace and verdict, test a step and certify a
scenario (docs/assistants.md). None returns a token or a key. SANDBOX_ADMIN_KEY is the admin key of the sandbox, if it has one.`;

const sdk = '@modelcontextprotocol/sdk';

export default defineCommand(import.meta, {
  usage,
  options: {
    sandbox: { type: 'string', default: 'http://127.0.0.1:4010' },
    'launch-url': { type: 'string' },
    start: { type: 'string' },
  },
  async run({ values }) {
    const addresses = { sandbox: values.sandbox, 'launch-url': values['launch-url'] };
    for (const [name, address] of Object.entries(addresses))
      if (address !== undefined && !isOfThisMachine(address))
        throw wrongArguments(`--${name} must be an http address of this machine`, usage);
    const { McpServer, StdioServerTransport } = await protocol();
    const cli = join(kitRoot, 'bin/marketplace-app-kit.mjs');
    const place: ToolPlace = {
      sandbox: {
        url: new URL(values.sandbox).origin,
        adminKey: readSecret(process.env, 'SANDBOX_ADMIN_KEY') ?? undefined,
      },
      launchUrl: values['launch-url'] ?? null,
      start: values.start ?? null,
      runCommand: (args, env) => printedBy(cli, args, env),
    };
    const server = new McpServer({ name: 'marketplace-app-kit', version: kitVersion });
    for (const [name, { title, description, inputSchema, run }] of Object.entries(tools))
      server.registerTool(name, { title, description, inputSchema: z.strictObject(inputSchema) }, async (input) => {
        try {
          const value = await run(input, place);
          return {
            content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value, null, 1) }],
          };
        } catch (error) {
          if (!(error instanceof KitError)) console.error(error);
          const text = error instanceof KitError ? error.message : `the tool failed: ${messageOf(error)}`;
          return { content: [{ type: 'text', text }], isError: true };
        }
      });
    const transport = new StdioServerTransport();
    const ended = new Promise<void>((resolve) => {
      onInterrupt(resolve);
      process.stdin.once('end', resolve);
    });
    await server.connect(transport);
    await ended;
    await server.close();
    return 0;
  },
});

/** The protocol's own library, which an app does without. Throws `KitError` if it is not installed. */
async function protocol() {
  try {
    const [{ McpServer }, { StdioServerTransport }] = await Promise.all([
      import('@modelcontextprotocol/sdk/server/mcp.js'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
    ]);
    return { McpServer, StdioServerTransport };
  } catch (cause) {
    throw new KitError('not_installed', `mcp needs a package: npm install --save-dev ${sdk}`, { cause });
  }
}
