import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';

const templatesFolder = fileURLToPath(new URL('../../../templates', import.meta.url));

export interface Pages {
  /** Renders `templates/app/<name>.eta`; everything is escaped unless the template says otherwise. */
  render(name: string, data: object): string;
}

export function createPages({ mapTiles }: { mapTiles: string | null }): Pages {
  const eta = new Eta({ views: templatesFolder, cache: true, autoEscape: true });
  return { render: (name, data) => eta.render(`app/${name}`, { mapTiles, ...data }) };
}
