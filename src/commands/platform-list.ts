import type { DefinedCommand } from './command.ts';

export interface ListedCommand {
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

/** Commands of the platform on this machine, which the sandbox's own package has too. They need no app of the kit's. */
export const platformCommands = {
  sandbox: {
    summary: 'the platform alone: build and test an app in any language against it',
    startsSandbox: true,
    load: () => import('./sandbox.ts'),
  },
  certify: {
    summary: 'launches any app through the plan of scenarios, and judges it',
    startsSandbox: true,
    load: () => import('./certify.ts'),
  },
  drift: {
    summary: 'compares a platform with the sandbox, and lists the differences',
    startsSandbox: true,
    load: () => import('./drift.ts'),
  },
  'can-i-deploy': {
    summary: 'decides by a signed report and a comparison whether an app may go live on a platform',
    isSpecial: true,
    load: () => import('./can-i-deploy.ts'),
  },
} as const satisfies Readonly<Record<string, ListedCommand>>;

/** Text of `--help`: the commands, those of everyday use first. */
export function usageOf(program: string, commands: Readonly<Record<string, ListedCommand>>): string {
  const linesOf = (isSpecial: boolean) =>
    Object.entries(commands)
      .filter(([, command]) => (command.isSpecial ?? false) === isSpecial)
      .map(
        ([name, { arguments: more, summary }]) =>
          `  ${(more === undefined ? name : `${name} ${more}`).padEnd(11)}  ${summary}`,
      );
  const special = linesOf(true);
  return [
    `usage: ${program} COMMAND [options]        (COMMAND --help says more of each)`,
    '',
    ...linesOf(false),
    ...(special.length > 0 ? ['', 'more:', ...special] : []),
  ].join('\n');
}
