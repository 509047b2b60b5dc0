import { KitError } from '../contract/index.ts';
import { requireSandboxPackages } from '../sandbox/packages.ts';
import { runCommand } from './command.ts';

const usage = `usage: marketplace-app-kit COMMAND [options]        (COMMAND --help says more of each)

  new FOLDER   a project of your own: an app that depends on this kit, with its tests and a workflow
  demo         the whole flow on this machine, from the launch to the delivered file
  dev          the platform and your app, restarted when you change it, in the browser
  sandbox      the platform alone: build and test an app in any language against it
  app          your app alone, against the platform that PLATFORM_URL names
  certify      launches any app through the plan of scenarios, and judges it
  new-step ID  a step of your own, in TypeScript, Python or by a program, with its cases
  replay       plays a run again that a sandbox has seen, with any app, and compares
  drift        what a platform does otherwise than the sandbox

more:
  test-step    all that a step of your app must do, as its test in test/my-app does
  reproduce    makes an output once more, and compares the two
  forget-user  removes all that your app keeps about a user
  setup        installs what npm cannot: GDAL's binding, bubblewrap

Your app is src/my-app/app.ts of the folder that you are in, or the module that MY_APP names; without one the kit's own.`;

/** Each runs when it is loaded, on what is left of the command line. */
const commands: Readonly<Record<string, () => Promise<unknown>>> = {
  new: () => import('./new.ts'),
  demo: () => import('./demo.ts'),
  dev: () => import('./dev.ts'),
  sandbox: () => import('./sandbox.ts'),
  certify: () => import('./certify.ts'),
  'new-step': () => import('./new-step.ts'),
  'test-step': () => import('./test-step.ts'),
  reproduce: () => import('./reproduce.ts'),
  drift: () => import('./drift.ts'),
  replay: () => import('./replay.ts'),
  app: () => import('./app.ts'),
  'forget-user': () => import('./forget-user.ts'),
};
/** They start a sandbox, or are one. */
const wantSandbox = new Set(['demo', 'dev', 'sandbox', 'certify', 'drift', 'replay']);

const [name] = process.argv.splice(2, 1);
const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
if (name === undefined || name === '--help' || name === 'help') console.log(usage);
else {
  if (command && wantSandbox.has(name)) await runCommand(async () => requireSandboxPackages());
  else if (!command)
    await runCommand(() => Promise.reject(new KitError('bad_arguments', `there is no command ${name}\n\n${usage}`)));
  if (command && process.exitCode !== 1) await command();
}
