import type { Response } from 'express';
import { Eta } from 'eta';
import { isPlainOrigin } from '../../contract/index.ts';
import type { Apps } from '../marketplace/apps.ts';
import { kitFolder } from '../../files/index.ts';

const templates = kitFolder('templates');

export interface PageOptions {
  readonly apps: Apps;
  /** Address of map tiles with `{z}`, `{x}` and `{y}`; null for the base map that is always there. */
  readonly mapTiles: string | null;
  readonly pendingCount: () => number;
}

/** Renders `templates/sandbox/<name>.eta`, everything escaped, with the headers that its page needs. */
export type RenderPage = (res: Response, name: string, data?: object) => void;

export function pageRenderer({ apps, mapTiles, pendingCount }: PageOptions): RenderPage {
  const eta = new Eta({ views: templates, cache: true, autoEscape: true });
  return (res, name, data = {}) => {
    // A policy has no words for an IPv6 address, and would read more into what is no plain name.
    const origins = [...new Set(apps.list().map(({ launchUrl }) => new URL(launchUrl).origin))].filter(isPlainOrigin);
    const tiles = mapTiles === null ? [] : [new URL(mapTiles.replace(/[{}]/g, '')).origin].filter(isPlainOrigin);
    res.set({
      'Content-Security-Policy': policyOf(origins, tiles),
      // With no-referrer a form's Origin would be null, and the sandbox could not tell its own pages from others.
      'Referrer-Policy': 'same-origin',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
      'Cache-Control': 'no-store',
    });
    res.type('html').send(eta.render(`sandbox/${name}`, { ...data, mapTiles, pendingCount: pendingCount() }));
  };
}

/** Forms and frames lead to the registered apps and nowhere else; scripts are files of our own. */
function policyOf(appOrigins: readonly string[], tileOrigins: readonly string[]): string {
  const directives: Readonly<Record<string, readonly string[]>> = {
    'default-src': ["'none'"],
    'script-src': ["'self'"],
    'style-src': ["'self'"],
    'img-src': ["'self'", 'data:', 'blob:', ...tileOrigins],
    'font-src': ["'self'"],
    'connect-src': ["'self'", ...tileOrigins],
    'worker-src': ["'self'"],
    'form-action': ["'self'", ...appOrigins],
    'frame-src': appOrigins.length > 0 ? appOrigins : ["'none'"],
    'frame-ancestors': ["'none'"],
    'base-uri': ["'none'"],
  };
  return Object.entries(directives)
    .map(([name, values]) => `${name} ${values.join(' ')}`)
    .join('; ');
}
