import { platformCommands, usageOf, type ListedCommand } from './platform-list.ts';

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
  sandbox: platformCommands.sandbox,
  app: {
    summary: 'your app alone, against the platform that PLATFORM_URL names',
    load: () => import('./app.ts'),
  },
  certify: platformCommands.certify,
  'new-step': {
    arguments: 'ID',
    summary: 'a step of your own, in TypeScript, Python or by a program, with its cases',
    load: () => import('./new-step.ts'),
  },
  connect: {
    summary: 'learns how a real platform differs, and writes your wire profile',
    load: () => import('./connect.ts'),
  },
  drift: platformCommands.drift,
  'test-step': {
    summary: 'the step tests of a step, as in test/my-app',
    isSpecial: true,
    load: () => import('./test-step.ts'),
  },
  'can-i-deploy': platformCommands['can-i-deploy'],
  mcp: {
    summary: 'tools for an assistant: launch, approve, arm faults, read trace and verdict',
    isSpecial: true,
    load: () => import('./mcp.ts'),
  },
  upgrade: {
    summary: 'lists the changes that hit a fork of an older version, and rehearses the merge',
    isSpecial: true,
    load: () => import('./upgrade.ts'),
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
  'exec-step': {
    summary: 'does one step for a worker elsewhere, as an engine such as Slurm starts it',
    isSpecial: true,
    load: () => import('./exec-step.ts'),
  },
  'forget-user': {
    summary: 'removes all that your app keeps about a user',
    isSpecial: true,
    load: () => import('./forget-user.ts'),
  },
};

export const usage = `${usageOf('marketplace-app-kit', commands)}
  setup        installs what npm cannot: GDAL's binding, bubblewrap

Your app is src/my-app/app.ts of the folder that you are in, or the module that MY_APP names; without one the kit's own.`;
