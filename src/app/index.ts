/** The app, wired: `createApp`, its settings, and the ports that somebody else can fill. */
export { ConfigError, readAppConfig, roles, Secret, type AppConfig, type Role } from './config.ts';
export { createApp, type App, type AppOptions, type Clock } from './create-app.ts';
export type { AppStores } from './open-stores.ts';
export { defineApp, type AppDefinition, type AppPage } from './definition/app-definition.ts';
export { checkDefinition, DefinitionError, manifestOf } from './definition/check-definition.ts';
export { loadApp } from './definition/load-app.ts';
export type { Launch, LaunchPage, LaunchStore } from './launch/launch-store.ts';
export { sessionLifetimeMs, type SessionStore } from './launch/session-store.ts';
export type { ProgressBoard, RunProgress } from './runs/run-progress.ts';
export { noProgress } from './runs/run-progress.ts';
// oxlint-disable-next-line typescript/no-deprecated -- forks of 0.2 import `Lane`
export type { Lane, QueueName, QueuedRun, QueueWorker, RunQueue } from './runs/run-queue.ts';
export { IllegalTransitionError, runTransitions, type RunState } from './runs/run-state.ts';
export type { RunView } from './runs/run-view.ts';
export type * from './runs/run.ts';
