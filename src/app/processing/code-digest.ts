import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kitFolder, kitVersion } from '../../files/index.ts';
import type { AnyStep } from '../../steps/step.ts';

/** Excludes files next to the code that do not affect any pixel. */
const isCode = (path: string) =>
  !path.split(sep).some((part) => part === 'node_modules' || part === 'data' || part.startsWith('.')) &&
  !/(^|[/\\])(cases\.json|[^/\\]*\.md|__pycache__[/\\].*)$/.test(path);

/** SHA-256 of a folder's code: names and contents, whatever the order in which the system lists them. */
export async function digestOfFolder(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter(isCode)
    .sort();
  const hash = createHash('sha256');
  for (const name of names) {
    const bytes = await readFile(join(folder, name));
    hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest('hex');
}

/** The step's folder, which its cases lie in; of a step without cases the folder of the app that it belongs to. */
function folderOfStep(step: Pick<AnyStep, 'cases'>, definitionModule: string): string {
  return dirname(fileURLToPath(step.cases ?? definitionModule));
}

/** The kit's version, with what tells a fork's changes of what its steps are made with. */
async function kitSoftware(): Promise<Record<string, string>> {
  const parts = await Promise.all(
    ['raster', 'steps'].map((name) =>
      digestOfFolder(kitFolder(join(import.meta.url.endsWith('.ts') ? 'src' : 'dist', name))),
    ),
  );
  const digest = createHash('sha256').update(parts.join()).digest('hex').slice(0, 12);
  return { 'marketplace-app-kit': `${kitVersion}+${digest}` };
}

/** Digests of an app's code. A digest is read once, because the process runs the code that it loaded. A failed read is repeated. */
export class CodeDigests {
  #module: string;
  #steps = new Map<string, Promise<string>>();
  #software: Promise<Readonly<Record<string, string>>> | undefined;

  /** `module`: that of the app's definition. */
  constructor(module: string) {
    this.#module = module;
  }

  of(step: Pick<AnyStep, 'cases'>): Promise<string> {
    const folder = folderOfStep(step, this.#module);
    const known = this.#steps.get(folder) ?? digestOfFolder(folder);
    this.#steps.set(folder, known);
    known.catch(() => this.#steps.delete(folder));
    return known;
  }

  software(): Promise<Readonly<Record<string, string>>> {
    this.#software ??= kitSoftware();
    this.#software.catch(() => (this.#software = undefined));
    return this.#software;
  }
}
