/** The app as it is installed without development dependencies. */
import { readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);

/** Modules of the kit that `entry` loads, or starts in a child process, and the packages that they import. */
async function importsOf(
  entry: URL,
  seen = new Map<string, ReadonlySet<string>>(),
): Promise<Map<string, ReadonlySet<string>>> {
  const source = await readFile(entry, 'utf8');
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '');
  const specifiers = [
    ...code.matchAll(/^(?:import|export) (?!type )(?:[^'"();=]+ from )?['"]([^'"]+)['"]/gm),
    ...code.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g),
    ...code.matchAll(/new URL\(['"](\.[^'"]+\.ts)['"]/g),
  ].map(([, name]) => name!);
  seen.set(fileURLToPath(entry), new Set(specifiers.filter((name) => !name.startsWith('.') && !isBuiltin(name))));
  for (const name of specifiers.filter((one) => one.startsWith('.') && one.endsWith('.ts'))) {
    const next = new URL(name, entry);
    if (!seen.has(fileURLToPath(next))) await importsOf(next, seen);
  }
  return seen;
}

test('the app imports nothing that npm ci --omit=dev leaves out', async () => {
  const { dependencies } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const modules = await importsOf(new URL('src/commands/app.ts', root));
  const packages = new Set(
    [...modules.values()]
      .flatMap((names) => [...names])
      .map((name) =>
        name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/'),
      ),
  );
  // Packages that the app surely uses: an empty walk would prove nothing.
  for (const name of ['express', 'axios', 'kysely', 'gdal-async', 'pg-boss', 'sharp']) expect(packages).toContain(name);
  // Only a step that runs a model asks for it, when it runs, and says what to install.
  const asked = new Set(['onnxruntime-node']);
  expect([...packages].filter((name) => !(name in dependencies) && !asked.has(name))).toEqual([]);
  const inSteps = await readFile(new URL('src/steps/onnx-model.ts', root), 'utf8');
  expect(inSteps).toMatch(/await import\('\.\.\/raster\/model\/classify\.ts'\)/);
  for (const [path, names] of modules)
    if (names.has('onnxruntime-node')) expect(path).toMatch(/src\/raster\/model\/(classify|tiles)\.ts$/);
});

test.each(['app', 'sandbox'])('the image of the %s holds every module that it loads', async (name) => {
  const stage =
    new RegExp(`FROM base AS ${name}\\n([^]*?)\\nCMD`).exec(await readFile(new URL('Dockerfile', root), 'utf8'))?.[1] ??
    '';
  const copied = [...stage.matchAll(/^COPY (?!--from)(.+) (\S+)$/gm)].flatMap(([, sources = '']) => sources.split(' '));
  const modules = [...(await importsOf(new URL(`src/commands/${name}.ts`, root))).keys()].map((path) =>
    path.slice(fileURLToPath(root).length),
  );
  expect(modules.length).toBeGreaterThan(50);
  expect(modules.filter((path) => !copied.some((one) => path === one || path.startsWith(`${one}/`)))).toEqual([]);
});

test('the images build the binding of the version that package.json names, and compose names a profile that is there', async () => {
  const { dependencies } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const dockerfile = await readFile(new URL('Dockerfile', root), 'utf8');
  expect(/^ARG GDAL_ASYNC=(.+)$/m.exec(dockerfile)?.[1]).toBe(dependencies['gdal-async']);
  const profiles = (await readFile(new URL('docker-compose.yml', root), 'utf8')).matchAll(/seccomp:(\S+)/g);
  const paths = [...profiles].map(([, path]) => path!);
  expect(paths).toHaveLength(1);
  expect(JSON.parse(await readFile(new URL(paths[0]!, root), 'utf8'))).toMatchObject({
    defaultAction: 'SCMP_ACT_ERRNO',
  });
});
