import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Fork } from './migration.ts';

/** Counts where the fork's own lines are now. */
export interface OwnLines {
  readonly written: number;
  /** In the fork's files as they are now, or in a conflict. */
  readonly kept: number;
  /** In a file that a migration rewrote, and carried over in other words. */
  readonly rewritten: number;
  /** `path:line` of each that is nowhere. */
  readonly lost: readonly string[];
}

/** The formatter may change the layout, so lines are compared without spaces and without a final comma. */
const plain = (text: string) => text.replace(/\s+/g, '').replace(/,(?=[)\]}])/g, '');
const isTelling = (line: string) => plain(line).length > 3;
const isText = (path: string) =>
  /\.(ts|js|mjs|json|md|eta|css|svg|ya?ml|txt|html|sh|py)$|(^|\/)[A-Z][A-Za-z]+$/.test(path);

/** A conflict cuts statements in two: the fork's side is read as a whole too. */
function withSides(text: string): string {
  if (!text.includes('<<<<<<< ')) return text;
  return text + text.replace(/^<<<<<<< .*\n([^]*?)^=======\n[^]*?^>>>>>>> .*\n/gm, '$1');
}

/** Looks for every line that the fork has added to the kit, in all that the tree holds now. */
export async function countOwnLines(fork: Fork, rewrittenPaths: readonly string[]): Promise<OwnLines> {
  const { git, folder, base, before } = fork;
  const diff = await git.run(
    'diff',
    '-U0',
    '--no-renames',
    '--no-color',
    '--no-ext-diff',
    '--src-prefix=a/',
    '--dst-prefix=b/',
    base,
    before,
  );
  const added: { place: string; path: string; text: string }[] = [];
  let [path, line] = ['', 0];
  for (const text of diff.split('\n')) {
    if (text.startsWith('+++ ')) path = text.slice(6);
    else if (text.startsWith('@@')) line = Number(/\+(\d+)/.exec(text)?.[1] ?? 0);
    else if (text.startsWith('+')) {
      if (isText(path) && isTelling(text.slice(1))) added.push({ place: `${path}:${line}`, path, text: text.slice(1) });
      line += 1;
    }
  }
  // Covers everything merged, moved or written, tracked or not.
  const files = (await git.lines('ls-files', '--cached', '--others', '--exclude-standard')).filter(isText);
  const texts = await Promise.all(
    [...new Set(files)].map((file) => readFile(join(folder, file), 'utf8').then(withSides, () => '')),
  );
  const all = plain(texts.join('\n'));
  const lost: string[] = [];
  let [kept, rewritten] = [0, 0];
  for (const one of added) {
    if (all.includes(plain(one.text).replace(/,$/, ''))) kept += 1;
    else if (rewrittenPaths.some((changed) => one.path === changed || one.path.startsWith(`${changed}/`)))
      rewritten += 1;
    else lost.push(one.place);
  }
  return { written: added.length, kept, rewritten, lost };
}
