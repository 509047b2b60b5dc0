import { existsSync, readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownJson } from './json.ts';

/** The folder in which the kit lies: a repository, or a package that is installed somewhere. */
export const kitRoot = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** The kit was installed by a package manager, and is not a repository of its own. */
export const isPackage = !existsSync(join(kitRoot, 'src', 'commands'));

/** False in the sandbox's package and images, which have no app and no steps. */
export const hasApp = existsSync(join(kitRoot, isPackage ? 'dist' : 'src', 'app'));

const manifest = ownJson<{ name: string; version: string }>(readFileSync(join(kitRoot, 'package.json'), 'utf8'));

/** Version of the kit's package. */
export const kitVersion = manifest.version;

/** Beginning of a command line that runs a command of the kit: as a package of a project, or in a fork, without a link that npm has to make first. */
export const kitCommand = isPackage ? `npx ${manifest.name}` : 'npm run kit --';

/** Beginning of a command line that runs one of the commands that package.json has as scripts. */
export const scriptCommand = (name: string) => (isPackage ? `${kitCommand} ${name}` : `npm run ${name} --`);

/** A file or folder of the kit's: `templates/shared`. */
export function kitFolder(name: string): string {
  return join(kitRoot, name);
}

/** Folders of installed packages that pages load from, by the name below `/assets/vendor` (`templates/shared/vendored.json`). */
export function vendoredFolders(): ReadonlyMap<string, string> {
  const listed = ownJson<Record<string, string>>(readFileSync(kitFolder('templates/shared/vendored.json'), 'utf8'));
  return new Map(Object.entries(listed).map(([name, path]) => [name, packageFolder(path)]));
}

/** A folder of a package, wherever the package manager has put that: `maplibre-gl/dist`. */
function packageFolder(path: string): string {
  const [, name = '', inside = ''] = /^((?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(path) ?? [];
  const manifest = findPackageJSON(name, import.meta.url);
  if (manifest === undefined) throw new Error(`the package ${name} is not installed`);
  return join(dirname(manifest), inside);
}
