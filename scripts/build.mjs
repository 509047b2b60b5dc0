// Makes `dist` of `src` for the package: JavaScript, as Node strips no types below node_modules, and the types beside it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = process.argv[2] ?? join(root, 'dist');

rmSync(target, { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', target], {
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);

// Steps in Python and their helper, how images are built, and the cases of steps.
const source = join(root, 'src');
for (const name of readdirSync(source, { recursive: true }))
  if (/(\.py|cases\.json|Dockerfile)$/.test(name)) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    copyFileSync(join(source, name), join(target, name));
  }

// The compiler rewrites what is imported; modules that are started or imported by their address it does not know.
// In declarations it leaves what is imported as it was.
const addresses = /(new URL\((['"`])\.{1,2}\/[^'"`]*)\.ts(\2, import\.meta\.url\))/g;
const specifiers = /((?:from|import\() ?(['"])\.{1,2}\/[^'"]*)\.ts(\2)/g;
for (const name of readdirSync(target, { recursive: true })) {
  const pattern = name.endsWith('.d.ts') ? specifiers : name.endsWith('.js') ? addresses : null;
  if (pattern === null) continue;
  const path = join(target, name);
  const code = readFileSync(path, 'utf8');
  const rewritten = code.replace(pattern, '$1.js$3');
  if (rewritten !== code) writeFileSync(path, rewritten);
}
