/** Tools for tests of an app: the platform and the app in the test's own process, and the suites of the ports. */
export { openLaunch, type AppSession } from './app-session.ts';
export { deliver, type Delivered, type WantedRun } from './deliver.ts';
export * from './sandbox-control.ts';
export { startApp, type RunningApp, type StartAppOptions } from './start-app.ts';
export { startSandbox, type RunningSandbox, type StartSandboxOptions } from './start-sandbox.ts';
export { launchStoreSuite, type LaunchStoreSubject } from './suites/launch-store-suite.ts';
export { progressSuite, type ProgressSubject } from './suites/progress-suite.ts';
export { runQueueSuite } from './suites/run-queue-suite.ts';
export { newRun, runStoreSuite, type RunStoreSubject } from './suites/run-store-suite.ts';
export { sessionStoreSuite, type SessionStoreSubject } from './suites/session-store-suite.ts';
export { testStep, type StepTestTools } from './step-battery/index.ts';
export type { SuiteTools } from './suites/suite-tools.ts';
