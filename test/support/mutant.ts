import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { projectRoot, testFolder } from './folders.ts';

/** One place of a source file, and what a mistake would have made of it. */
export interface Mutation {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A copy of the kit, in a folder that goes with the test, with these places changed. `alsoCopied`: beside what the servers need. */
export async function mutant(mutations: readonly Mutation[], alsoCopied: readonly string[] = []): Promise<string> {
  const folder = await testFolder();
  for (const name of ['src', 'templates', 'scripts', 'package.json', ...alsoCopied]) await cp(join(projectRoot, name), join(folder, name), { recursive: true });
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of mutations) {
    const path = join(folder, file);
    const source = await readFile(path, 'utf8');
    // A mutant of what is not there any more would test nothing.
    expect(source.split(from), `${file} has ${from} once`).toHaveLength(2);
    await writeFile(path, source.replace(from, () => to));
  }
  return folder;
}
