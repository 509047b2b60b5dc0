/**
 * Entry `marketplace-app-kit/testing`: tools for tests of an app. They start a sandbox, so loading this module throws
 * `KitError` (`not_installed`) if a package is missing that only the sandbox needs.
 */
import { requireSandboxPackages } from '../sandbox/packages.ts';

requireSandboxPackages();

export type * from './exports.ts';
export const { openLaunch, deliver, sandboxControl, startApp, startSandbox, testStep } = await import('./exports.ts');
