/** Functions and types to describe an app. Nothing here starts anything: child processes load it too. */
export { defineApp, type AppDefinition, type AppPage } from './app/definition/app-definition.ts';
export { assumedProfile, wireProfile, type WireChanges, type WireProfile } from './contract/index.ts';
export * from './steps/index.ts';
