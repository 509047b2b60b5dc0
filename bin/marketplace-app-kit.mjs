#!/usr/bin/env node
// The kit's commands for whoever has installed it: `npx marketplace-app-kit --help`. Plain JavaScript: it runs on an older
// Node too, and goes on with the one that came with the package.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededNode = 24;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const setUp = join(root, 'scripts', 'setup.mjs');
const args = process.argv.slice(2);

if (args[0] === 'setup') {
  process.exitCode = spawnSync(process.execPath, [setUp, ...args.slice(1)], { stdio: 'inherit' }).status ?? 1;
} else if (Number(process.versions.node.split('.')[0]) < neededNode) {
  const node = shippedNode();
  if (node === null) {
    console.error(`Node ${neededNode} or later is needed, this is ${process.version}: install one from nodejs.org`);
    process.exitCode = 1;
  } else
    process.exitCode =
      spawnSync(node, [...process.execArgv, fileURLToPath(import.meta.url), ...args], { stdio: 'inherit' }).status ?? 1;
} else {
  await import('../scripts/preload.mjs');
  // In the repository the code runs as it is written.
  const asWritten = existsSync(join(root, 'src', 'commands', 'cli.ts'));
  await import(asWritten ? '../src/commands/cli.ts' : '../dist/commands/cli.js');
}

/** The Node that the package brings for this system, or null. */
function shippedNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`);
    const node = join(dirname(manifest), 'bin', 'node');
    return existsSync(node) ? node : null;
  } catch {
    return null;
  }
}
