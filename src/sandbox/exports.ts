/** The platform on one machine: to start in a process of one's own. In a test `startSandbox` of `/testing` is shorter. */
export { readSandboxConfig, SandboxConfigError, type SandboxConfig, type Seed } from './config.ts';
export { createSandbox, type Sandbox, type SandboxOptions } from './create-sandbox.ts';
