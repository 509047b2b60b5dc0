import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Todo } from './migration.ts';

/** At the root of the fork. `npm test` fails while it names something. */
export const todoFile = 'UPGRADE-TODO.md';

const head = `# What the upgrade could not do by itself

Do each, and remove its line; remove the file with the last one. \`npm test\` fails until then.

`;

export async function writeTodos(folder: string, todos: readonly Todo[]): Promise<void> {
  const path = join(folder, todoFile);
  if (todos.length === 0) return rm(path, { force: true });
  await writeFile(path, head + todos.map(({ name, place, what }) => `- **${name}** \`${place}\`: ${what}\n`).join(''));
}

/** The lines that are still there. */
export async function openTodos(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, todoFile), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line.startsWith('- '));
}
