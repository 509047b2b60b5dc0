import type { AppDefinition } from '../app/definition/app-definition.ts';
import { hasApp } from '../files/index.ts';

/** The app of this folder or of the kit. Null in the sandbox's own package and image, which contain no app. */
export async function ownApp(): Promise<AppDefinition | null> {
  return hasApp ? (await import('./my-app.ts')).loadMyApp() : null;
}
