/** The set-up: what has been built stays, two at once do not meet, and another project's packages are not touched. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';

/** A project with the kit's set-up, a binding that took minutes, and an npm that does what a test says. No apt-get is on its PATH. */
async function project(npm: string) {
  const folder = await testFolder();
  for (const name of ['scripts', 'src/needs.json', 'package.json', 'package-lock.json'])
    await cp(join(projectRoot, name), join(folder, name), { recursive: true });
  const gdal = join(folder, 'node_modules/gdal-async');
  await mkdir(join(gdal, 'lib/binding'), { recursive: true });
  await writeFile(join(gdal, 'package.json'), '{"version":"3.0.0"}');
  await writeFile(join(gdal, 'lib/binding/gdal.node'), 'minutes of work');
  const bin = join(folder, 'bin');
  await mkdir(bin);
  for (const name of ['bash', 'rm', 'mkdir', 'sleep', 'cat']) await symlink(`/bin/${name}`, join(bin, name));
  await symlink(process.execPath, join(bin, 'node'));
  await writeFile(join(bin, 'npm'), `#!/bin/bash\n${npm}\n`, { mode: 0o755 });
  const run = async (env: Readonly<Record<string, string>> = {}) => {
    const child = spawn(process.execPath, ['scripts/setup.mjs'], {
      cwd: folder,
      env: { PATH: bin, CI: 'true', ...env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => (output += part));
    const [status] = (await once(child, 'close')) as [number];
    return { status, output };
  };
  return { folder, run, binding: join(gdal, 'lib/binding/gdal.node') };
}

const installs = `rm -rf node_modules; mkdir -p node_modules/gdal-async; echo '{"version":"3.0.0"}' > node_modules/gdal-async/package.json`;

test('a built binding outlives an npm ci that fails', async () => {
  const { folder, run, binding } = await project(
    `rm -rf node_modules; if [ ! -e tried ]; then echo > tried; exit 1; fi; ${installs}`,
  );
  const failed = await run();
  expect([failed.status, failed.output]).toEqual([1, expect.stringContaining('npm ci failed')]);
  await run();
  expect(await readFile(binding, 'utf8')).toBe('minutes of work');
  expect(await readdir(join(folder, '.cache'))).toEqual([]);
});

test('of two at once one waits for the other', async () => {
  const { folder, run } = await project(`echo begins >> log; sleep 2; ${installs}; echo ends >> log`);
  const ends = await Promise.all([run(), run()]);
  expect(ends.map(({ output }) => output).join()).toContain('another set-up of this folder is running');
  expect(await readFile(join(folder, 'log'), 'utf8')).toMatch(/^(begins\nends\n)+$/);
});

test('a lock whose process is gone holds nobody', async () => {
  const { folder, run, binding } = await project(installs);
  await mkdir(join(folder, '.cache'));
  await writeFile(join(folder, '.cache/setup.lock'), '999999999');
  await run();
  expect(await readFile(binding, 'utf8')).toBe('minutes of work');
});

test('packages behind a link are another project’s', async () => {
  const { folder, run, binding } = await project(installs);
  const other = await testFolder();
  await cp(join(folder, 'scripts'), join(other, 'scripts'), { recursive: true });
  for (const name of ['src/needs.json', 'package.json', 'package-lock.json'])
    await cp(join(folder, name), join(other, name));
  await symlink(join(folder, 'node_modules'), join(other, 'node_modules'));
  const child = spawn(process.execPath, ['scripts/setup.mjs'], { cwd: other, env: { PATH: join(folder, 'bin') } });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => (output += part));
  expect((await once(child, 'close'))[0]).toBe(1);
  expect(output).toContain(`node_modules is a symbolic link to ${join(folder, 'node_modules')}`);
  expect((await lstat(binding)).isFile()).toBe(true);
  expect(await run()).toMatchObject({ output: expect.stringContaining('installing packages') as string });
});

test('a build names its log at the start, and prints the end of the log if it fails', async () => {
  const { folder, run, binding } = await project(
    `if [ "$1" = rebuild ]; then echo 'undefined reference to GDALOpen'; exit 1; fi; ${installs}`,
  );
  await rm(join(folder, 'node_modules'), { recursive: true });
  for (const name of ['gdal-config', 'g++', 'make', 'python3'])
    await writeFile(join(folder, 'bin', name), '#!/bin/bash\necho 3.6.2\n', { mode: 0o755 });
  const { status, output } = await run({ GDAL_PREBUILT: 'no' });
  const log = join(folder, 'node_modules/.gdal-async-build.log');
  expect(status, output).toBe(1);
  expect(output.indexOf(`Its log is ${log}`)).toBeGreaterThan(-1);
  expect(output.indexOf(`Its log is ${log}`)).toBeLessThan(output.indexOf('undefined reference to GDALOpen'));
  expect(output).toContain(`The whole log is ${log}`);
  expect(existsSync(binding)).toBe(false);
});
