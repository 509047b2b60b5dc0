/** Makes a release of what is committed: its record, its version, its sections. `npm run lab -- scripts/release/release.ts 1.1.0` */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrations } from '../../src/app/migrations.ts';
import { runCommand } from '../../src/commands/command.ts';
import { KitError } from '../../src/contract/index.ts';
import { publicSurface, type ReleaseRecord } from './public-surface.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const path = (name: string) => join(root, name);
const edit = (name: string, change: (text: string) => string) =>
  writeFileSync(path(name), change(readFileSync(path(name), 'utf8')));

await runCommand(() => {
  const [version = ''] = process.argv.slice(2);
  if (!/^\d+\.\d+\.\d+$/.test(version))
    throw new KitError('bad_arguments', 'usage: npm run lab -- scripts/release/release.ts VERSION, such as 1.1.0');
  const dirty = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trim();
  if (dirty !== '') throw new KitError('dirty_tree', `commit first:\n${dirty}`);
  const date = new Date().toISOString().slice(0, 10);
  const record: ReleaseRecord = { version, lastMigration: Object.keys(migrations).at(-1)!, surface: publicSurface() };
  writeFileSync(path(`lab/releases/${version}.json`), `${JSON.stringify(record, null, 2)}\n`);
  for (const name of ['package.json', 'package-lock.json'])
    edit(name, (text) => {
      let left = name === 'package.json' ? 1 : 2;
      return text.replace(/"version": "[^"]+"/g, (found) => (left-- > 0 ? `"version": "${version}"` : found));
    });
  edit('CHANGELOG.md', (text) => text.replace('## Unreleased\n', `## Unreleased\n\n## ${version} - ${date}\n`));
  edit('docs/upgrading.md', (text) =>
    text.replace(/## Unreleased\n(?:\nNothing yet\.\n)?/, `## Unreleased\n\nNothing yet.\n\n## To ${version}\n`),
  );
  console.log(
    `lab/releases/${version}.json is written. Look at the changes, commit them, and tag the commit v${version}.`,
  );
});
