import { createRequire } from 'node:module';
import { KitError } from '../contract/index.ts';
import { runCommand } from './command.ts';

const usage = `usage: marketplace-app-kit COMMAND [options]        (COMMAND --help says more of each)

  new FOLDER   a project of your own: an app that depends on this kit, with its tests and a workflow
  demo         the whole flow on this machine, from the launch to the delivered file
  dev          the platform and your app, restarted when you change it, in the browser
  sandbox      the platform alone: build and test an app in any language against it
  certify      launches any app through the plan of scenarios, and judges it
  new-step ID  a step of your own, in TypeScript, Python or by a program, with its cases
  test-step    all that a step of your app must do
  reproduce    makes an output once more, and compares the two
  bundle       a run that a sandbox has seen, as one file
  replay       plays such a run again, with any app, and compares
  drift        what a platform does otherwise than the sandbox
  app          your app alone, against the platform that PLATFORM_URL names
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
  bundle: () => import('./bundle.ts'),
  replay: () => import('./replay.ts'),
  app: () => import('./app.ts'),
};
/** Large, and the sandbox says what is missing without it. */
const onlyForModels = 'onnxruntime-node';

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

/** Checks for the sandbox's packages, which an app in production does without. Throws `KitError` if one is missing. */
function requireSandboxPackages(): void {
  const { resolve } = createRequire(import.meta.url);
  const { peerDependencies } = createRequire(import.meta.url)('../../package.json') as {
    peerDependencies: Record<string, string>;
  };
  const missing = Object.keys(peerDependencies).filter((one) => one !== onlyForModels && !isInstalled(one, resolve));
  if (missing.length === 0) return;
  const wanted = missing.map((one) => `'${one}@${peerDependencies[one]}'`).join(' ');
  throw new KitError(
    'not_installed',
    `the sandbox needs packages that an app in production does without. Install them:\n\n    npm install --save-dev ${wanted}`,
  );
}

function isInstalled(name: string, resolve: (path: string) => string): boolean {
  for (const path of [name, `${name}/package.json`]) {
    try {
      resolve(path);
      return true;
    } catch {
      // Some packages hide their manifest, others have no main module for `require`.
    }
  }
  return false;
}
