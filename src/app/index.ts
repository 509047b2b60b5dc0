/** The app, wired: `createApp`, its settings and its definition. */
export { ConfigError, readAppConfig, roles, Secret, type AppConfig, type Role } from './config.ts';
export { createApp, type App, type AppOptions, type Clock } from './create-app.ts';
export { defineApp, type AppDefinition, type AppPage } from './definition/app-definition.ts';
export { checkDefinition, DefinitionError, manifestOf } from './definition/check-definition.ts';
export { loadApp } from './definition/load-app.ts';
export { IllegalTransitionError, runTransitions, type RunState } from './runs/run-state.ts';
export type { RunView } from './runs/run-view.ts';
export type { Run, RunFailure, RunFile } from './runs/run.ts';
