import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { projectRoot, testFolder } from './folders.ts';
import { codePattern, type Mutation } from './mutation.ts';

export type { Mutation } from './mutation.ts';

/** A copy of the kit, in a folder that goes with the test, with these places changed. `alsoCopied`: beside what the servers need. */
export async function mutant(mutations: readonly Mutation[], alsoCopied: readonly string[] = []): Promise<string> {
  const folder = await testFolder();
  for (const name of ['src', 'templates', 'scripts', 'package.json', ...alsoCopied])
    await cp(join(projectRoot, name), join(folder, name), { recursive: true, preserveTimestamps: true });
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
