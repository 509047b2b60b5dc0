import { existsSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';
import { kitFolder } from '../../files/index.ts';
import type { AppDefinition } from '../definition/app-definition.ts';

export interface Pages {
  /** Renders `<name>.eta` of the app's own templates, or else of `templates/app`; everything is escaped unless the template says otherwise. */
  render(name: string, data: object): string;
}

export interface PagesOptions {
  /** Address of map tiles; null for the base map that is always there. */
  readonly mapTiles: string | null;
  readonly app: Pick<AppDefinition, 'name' | 'description' | 'templates' | 'pages'>;
}

/** Names of the app's templates begin with this; names of templates that app and sandbox share begin with `shared/`. */
const ofApp = 'app/';

export function createPages({ mapTiles, app }: PagesOptions): Pages {
  const own = app.templates ? fileURLToPath(app.templates) : null;
  const kit = kitFolder('templates');
  const eta = new Eta({ views: kit, cache: true, autoEscape: true });

  /** Maps a file to its template's name, whether app or kit owns it. */
  function nameOf(path: string): string {
    const inOwn = own === null ? '..' : relative(own, path);
    const name = inOwn.startsWith('..') ? relative(kit, path).split(sep).join('/') : inOwn.split(sep).join('/');
    return inOwn.startsWith('..') || name.startsWith('shared/') ? name : ofApp + name;
  }
  function fileOf(name: string): string {
    const mine = own && join(own, `${name.startsWith(ofApp) ? name.slice(ofApp.length) : name}.eta`);
    return mine && existsSync(mine) ? mine : join(kit, `${name}.eta`);
  }
  eta.resolvePath = (template, options) => {
    const from = options?.filepath;
    const isRelative = template.startsWith('.') && from !== undefined;
    const name = posix.normalize(
      isRelative ? posix.join(posix.dirname(nameOf(from)), template) : template.replace(/^\/+/, ''),
    );
    return fileOf(name);
  };

  const common = { mapTiles, app: { name: app.name, description: app.description, pages: app.pages ?? [] } };
  return { render: (name, data) => eta.render(ofApp + name, { ...common, ...data }) };
}
