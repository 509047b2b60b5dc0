// Finds a Node that runs the kit, and hands over. A fork of a kit that has no `npm run upgrade` yet calls the later kit's:
// node path/to/kit/scripts/upgrade.mjs --from path/to/kit --to v0.2.0
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kit = dirname(dirname(fileURLToPath(import.meta.url)));
const shipped = [process.cwd(), kit].map((folder) =>
  join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node'),
);
const isNewEnough = Number(process.versions.node.split('.')[0]) >= 24;
const node = isNewEnough ? process.execPath : shipped.find((path) => existsSync(path));
if (node === undefined) {
  console.error(`Node 24 or later is needed, this is ${process.version}: run npm run setup first`);
  process.exitCode = 1;
} else {
  const script = join(kit, 'src', 'upgrade', 'upgrade.ts');
  process.exitCode = spawnSync(node, [script, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1;
}
