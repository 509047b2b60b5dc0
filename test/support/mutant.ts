import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { projectRoot, testFolder } from './folders.ts';

/** One place of a source file, and what a mistake would have made of it. Where `from` breaks its lines does not matter. */
export interface Mutation {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A copy of the kit, in a folder that goes with the test, with these places changed. `alsoCopied`: beside what the servers need. */
export async function mutant(mutations: readonly Mutation[], alsoCopied: readonly string[] = []): Promise<string> {
  const folder = await testFolder();
  for (const name of ['src', 'templates', 'scripts', 'package.json', ...alsoCopied])
    await cp(join(projectRoot, name), join(folder, name), { recursive: true });
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of mutations) {
    const path = join(folder, file);
    const source = await readFile(path, 'utf8');
    const places = [...source.matchAll(codePattern(from))];
    // A mutant of what is not there any more would test nothing.
    expect(places, `${file} has ${from} once`).toHaveLength(1);
    await writeFile(
      path,
      source.replace(codePattern(from), () => to),
    );
  }
  return folder;
}

/** Finds code however the formatter has laid it out: line breaks, and the commas and parentheses that come with them. */
function codePattern(code: string): RegExp {
  const words = code.match(/[\w$]+|[^\s\w$]/g) ?? [];
  const pattern = words.map((word, i) => {
    const escaped = RegExp.escape(word);
    const before = words[i - 1];
    if (before === undefined) return escaped;
    const isJoined = /^[\w$]/.test(word) && /[\w$]$/.test(before);
    if (isJoined) return String.raw`\s+${escaped}`;
    return (/^[)\]}]$/.test(word) ? String.raw`,?\s*` : String.raw`\s*`) + escaped;
  });
  return new RegExp(pattern.join(''), 'g');
}
