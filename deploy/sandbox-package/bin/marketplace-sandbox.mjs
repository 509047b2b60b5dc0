#!/usr/bin/env node
// The platform, the certifier and drift: `npx marketplace-sandbox --help`. Plain JavaScript, so that an older Node gets a sentence.
const oldest = [22, 14];
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
  console.error(`Node ${oldest.join('.')} or later is needed, this is ${process.version}: install one from nodejs.org`);
  process.exitCode = 1;
} else {
  await import('../scripts/preload.mjs');
  await import('../dist/commands/platform-cli.js');
}
