/** Tools for tests of an app: the platform and the app in the test's own process, and the step tests. */
export { openLaunch, type AppSession } from './app-session.ts';
export { deliver, type Delivered, type WantedRun } from './deliver.ts';
export * from './sandbox-control.ts';
export { startApp, type RunningApp, type StartAppOptions } from './start-app.ts';
export { startSandbox, type RunningSandbox, type StartSandboxOptions } from './start-sandbox.ts';
export { testStep, type StepTestTools } from './step-battery/index.ts';
