// Makes the package of the sandbox, certifier and drift, without app and steps: `npm run sandbox-package [-- FOLDER]` writes
// marketplace-sandbox-VERSION.tgz into the folder, by default the current one. Its modules and packages follow from the imports.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageOf, reach } from './reach.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const own = join(root, 'deploy', 'sandbox-package');
const to = resolve(process.env.INIT_CWD ?? '.', process.argv[2] ?? '.');

/** The commands, the module that starts the platform in a program, and their types. */
const entries = ['commands/platform-cli.js', 'sandbox/exports.js'];
/** They belong to the kit's own app, which this package does without (`hasApp`). */
const without = ['commands/my-app.js', 'commands/trial-run.js'];
/** Needed only to open rasters and to run models; the sandbox says what is missing without them. */
const optional = ['gdal-async', 'onnxruntime-node', 'sharp'];
/** Files that the code reads and does not import. */
const data = [
  'templates/sandbox',
  'templates/shared',
  'templates/certify',
  'src/sandbox/models',
  'src/sandbox/scenes',
  'examples/python/app.py',
  'scripts/preload.mjs',
  'LICENSE',
];

const work = mkdtempSync(join(tmpdir(), 'sandbox-package-'));
try {
  const compiled = join(work, 'compiled');
  run(process.execPath, [join(root, 'scripts', 'build.mjs'), compiled]);
  const folder = join(work, 'package');
  const { files, packages } = reach(compiled, entries, without);
  const types = reach(compiled, ['sandbox/exports.d.ts']).files;
  for (const file of [...files, ...types]) copy(join(compiled, file), join(folder, 'dist', file));
  for (const path of data) copy(join(root, path), join(folder, path));
  cpSync(own, folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(packages), null, 2)}\n`);
  mkdirSync(to, { recursive: true });
  run('npm', ['pack', '--silent', '--pack-destination', to], folder);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function manifestOf(imported) {
  const kit = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const template = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  // Pages load the map from packages that no module imports.
  const vendored = Object.values(JSON.parse(readFileSync(join(root, 'templates/shared/vendored.json'), 'utf8')));
  const names = [...new Set([...imported, ...vendored.map(packageOf)])].sort();
  const versionOf = (name) => kit.dependencies[name] ?? kit.devDependencies[name];
  for (const name of names)
    if (!versionOf(name)) throw new Error(`${name} is imported, and package.json does not have it`);
  const versions = (chosen) => Object.fromEntries(chosen.map((name) => [name, versionOf(name)]));
  return {
    ...template,
    version: kit.version,
    license: kit.license,
    engines: kit.engines,
    dependencies: versions(names.filter((name) => !optional.includes(name))),
    peerDependencies: versions(optional),
    peerDependenciesMeta: Object.fromEntries(optional.map((name) => [name, { optional: true }])),
  };
}

function copy(from, target) {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(from, target, { recursive: true });
}

function run(program, args, cwd = root) {
  const { status, error } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (status !== 0) throw error ?? new Error(`${program} ${args[0]} ended with ${status}`);
}
