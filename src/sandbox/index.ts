/**
 * Entry `marketplace-app-kit/sandbox`. Loading this module throws `KitError` (`not_installed`) if a package is missing
 * that only the sandbox needs.
 */
import { requireSandboxPackages } from './packages.ts';

requireSandboxPackages();

export type * from './exports.ts';
export const { createSandbox, readSandboxConfig, SandboxConfigError } = await import('./exports.ts');
export type SandboxConfigError = InstanceType<typeof SandboxConfigError>;
