import type { DefinedCommand } from './command.ts';

interface ListedCommand {
  /** One line of the usage. */
  readonly summary: string;
  /** Arguments after the name. */
  readonly arguments?: string;
  /** True if the usage lists it under "more". */
  readonly isSpecial?: boolean;
  /** True if it starts a sandbox, or is one. */
  readonly startsSandbox?: boolean;
  readonly load: () => Promise<{ readonly default: DefinedCommand }>;
}

/** The commands of the kit, in the order of the usage. `setup` runs before the kit's packages are there, so it is a script. */
export const commands: Readonly<Record<string, ListedCommand>> = {
  new: {
    arguments: 'FOLDER',
    summary: 'a project of your own: an app that depends on this kit, with its tests and a workflow',
    load: () => import('./new.ts'),
  },
  demo: {
    summary: 'the whole flow on this machine, from the launch to the delivered file',
    startsSandbox: true,
    load: () => import('./demo.ts'),
  },
  dev: {
    summary: 'the platform and your app, restarted when you change it, in the browser',
    startsSandbox: true,
    load: () => import('./dev.ts'),
  },
  sandbox: {
    summary: 'the platform alone: build and test an app in any language against it',
    startsSandbox: true,
    load: () => import('./sandbox.ts'),
  },
  app: {
    summary: 'your app alone, against the platform that PLATFORM_URL names',
    load: () => import('./app.ts'),
  },
  certify: {
    summary: 'launches any app through the plan of scenarios, and judges it',
    startsSandbox: true,
    load: () => import('./certify.ts'),
  },
  'new-step': {
    arguments: 'ID',
    summary: 'a step of your own, in TypeScript, Python or by a program, with its cases',
    load: () => import('./new-step.ts'),
  },
  drift: {
    summary: 'compares a platform with the sandbox, and lists the differences',
    startsSandbox: true,
    load: () => import('./drift.ts'),
  },
  'test-step': {
    summary: 'the step tests of a step, as in test/my-app',
    isSpecial: true,
    load: () => import('./test-step.ts'),
  },
  migrate: {
    summary: "creates your app's tables, or brings them up to date",
    isSpecial: true,
    load: () => import('./migrate.ts'),
  },
  ops: {
    summary: 'shows and changes runs and workers of your app',
    isSpecial: true,
    load: () => import('./ops.ts'),
  },
  'forget-user': {
    summary: 'removes all that your app keeps about a user',
    isSpecial: true,
    load: () => import('./forget-user.ts'),
  },
};

const linesOf = (isSpecial: boolean) =>
  Object.entries(commands)
    .filter(([, command]) => (command.isSpecial ?? false) === isSpecial)
    .map(
      ([name, { arguments: more, summary }]) =>
        `  ${(more === undefined ? name : `${name} ${more}`).padEnd(11)}  ${summary}`,
    )
    .join('\n');

export const usage = `usage: marketplace-app-kit COMMAND [options]        (COMMAND --help says more of each)

${linesOf(false)}

more:
${linesOf(true)}
  setup        installs what npm cannot: GDAL's binding, bubblewrap

Your app is src/my-app/app.ts of the folder that you are in, or the module that MY_APP names; without one the kit's own.`;
