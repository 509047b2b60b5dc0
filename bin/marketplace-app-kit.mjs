#!/usr/bin/env node
// The kit's commands for whoever has installed it: `npx marketplace-app-kit --help`. Plain JavaScript: it runs on an older
// Node too, and goes on with the one that came with the package.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededNode = 24;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const setUp = join(root, 'scripts', 'setup.mjs');
const args = process.argv.slice(2);

if (args[0] === 'setup') {
  await goOnWith(process.execPath, [setUp, ...args.slice(1)]);
} else if (!isRightNode()) {
  const node = shippedNode();
  if (node === null) {
    console.error(`Node ${neededNode} or later is needed, this is ${process.version}: install one from nodejs.org`);
    process.exitCode = 1;
  } else await goOnWith(node, [...process.execArgv, fileURLToPath(import.meta.url), ...args]);
} else {
  await import('../scripts/preload.mjs');
  // In the repository the code runs as it is written.
  const asWritten = existsSync(join(root, 'src', 'commands', 'cli.ts'));
  await import(asWritten ? '../src/commands/cli.ts' : '../dist/commands/cli.js');
}

/**
 * The set-up builds GDAL's binding for the shipped Node, if there is one. Any Node of the same major version has the same ABI.
 */
function isRightNode() {
  const major = Number(process.versions.node.split('.')[0]);
  const shipped = shippedNode();
  return major >= neededNode && (shipped === null || major === neededNode || process.execPath === shipped);
}

/** Runs a program instead of this process: forwards signals, and exits with its status. */
async function goOnWith(program, programArgs) {
  const child = spawn(program, programArgs, { stdio: 'inherit' });
  // A terminal signals the child too. A second signal would end the child without its clean-up.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => (signal === 'SIGTERM' || !process.stdin.isTTY) && child.kill(signal));
  process.exitCode = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
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
