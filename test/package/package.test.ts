// @module-tag all
/** The kit as somebody has it who installed it: a packed tarball in a project of theirs, and nothing of this repository. */
import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeFolder, projectRoot, testFolder } from '../support/folders.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { mutant } from '../support/mutant.ts';
import { needing, registry } from '../support/needs.ts';

const run = promisify(execFile);
const timeout = 900_000;
const shipped = [
  'bin',
  'CONTRIBUTING.md',
  'docs',
  'examples',
  'test/my-app',
  'tsconfig.json',
  'tsconfig.build.json',
  'CHANGELOG.md',
  'README.md',
  'LICENSE',
];

/** The project that `new` wrote, its packages in place as npm would have put them. */
let project: string;
let packed: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  // A copy is packed: packing writes into its folder.
  const source = await mutant([], shipped);
  const folder = await makeFolder();
  cleanUpLater(() => rm(folder, { recursive: true, force: true }));
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: source });
  const [tarball = ''] = await readdir(folder);
  packed = join(folder, tarball);
  await run('tar', ['-xzf', join(folder, tarball), '-C', folder]);

  // npm's own work takes minutes and the network: links to the files that it once put here stand in for it.
  project = join(folder, 'flood-mapper');
  const modules = join(project, 'node_modules');
  const outside = join(folder, 'node_modules');
  await copyLinked(join(projectRoot, 'node_modules'), outside);
  await cp(join(folder, 'package'), join(outside, 'marketplace-app-kit'), { recursive: true });
  env = { ...process.env, NO_COLOR: '1', INIT_CWD: '', MY_APP: '' };
  delete env['INIT_CWD'];
  const cli = join(outside, 'marketplace-app-kit/bin/marketplace-app-kit.mjs');
  await run(process.execPath, [cli, 'new', 'flood-mapper', '--kit', `./${tarball}`], { cwd: folder, env });
  await run('mv', [outside, modules]);
  env['PATH'] = [join(modules, '.bin'), process.env['PATH']].join(delimiter);
}, timeout);

async function copyLinked(from: string, to: string): Promise<void> {
  // Across file systems there are no hard links.
  await run('cp', ['-al', from, to]).catch(async () => {
    await rm(to, { recursive: true, force: true });
    await run('cp', ['-a', from, to]);
  });
}

interface Manifest {
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, unknown>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

describe(
  'as npm installs it in an empty project, on the oldest Node that it promises',
  needing(await registry()),
  () => {
    const npm = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const ofSandbox = ['./sandbox', './testing'];
    let manifest: Manifest;
    let empty: string;
    let node: string;

    beforeAll(async () => {
      manifest = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8')) as Manifest;
      const oldest = `${/^>=(\d+\.\d+)$/.exec(manifest.engines.node)?.[1]}.0`;
      const folder = await makeFolder();
      cleanUpLater(() => rm(folder, { recursive: true, force: true }));
      [empty, node] = [join(folder, 'empty'), join(folder, `node_modules/node-linux-${process.arch}/bin/node`)];
      await mkdir(empty);
      await writeFile(join(empty, 'package.json'), '{"name":"somebody","private":true,"type":"module"}');
      await run('npm', ['install', ...npm, packed], { cwd: empty });
      await run('npm', ['install', ...npm, '--prefix', folder, `node-linux-${process.arch}@${oldest}`]);
      expect((await run(node, ['--version'])).stdout.trim()).toBe(`v${oldest}`);
    }, timeout);

    const load = (entry: string) =>
      run(node, ['--input-type=module', '-e', `await import('marketplace-app-kit${entry.slice(1)}')`], { cwd: empty });

    test(
      'every entry but the sandbox loads; those two say which packages are missing, and load with them',
      async () => {
        const entries = Object.keys(manifest.exports).filter((name) => name !== './package.json');
        expect(entries).toEqual(expect.arrayContaining(['.', './app', './platform-client', ...ofSandbox]));
        for (const entry of entries)
          // The entry for the work of a step needs GDAL, which the confined child has.
          if (entry === './raster') await expect(load(entry)).rejects.toThrow(/gdal/);
          else if (!ofSandbox.includes(entry)) await load(entry);
          else
            await expect(load(entry), entry).rejects.toMatchObject({
              stderr: expect.stringMatching(
                /the sandbox needs packages .*\n\n +npm install --save-dev .*busboy@\^/,
              ) as string,
            });
        const wanted = Object.entries(manifest.peerDependencies).filter(([name]) => name !== 'onnxruntime-node');
        await run('npm', ['install', ...npm, ...wanted.map((one) => one.join('@'))], { cwd: empty });
        for (const entry of ofSandbox) await load(entry);
        // With the types of what they import, and with those of packages checked.
        await run('npm', ['install', ...npm, 'typescript', '@types/node@24'], { cwd: empty });
        const lines = entries.map((entry, i) => `export * as e${i} from 'marketplace-app-kit${entry.slice(1)}';`);
        await writeFile(join(empty, 'all.ts'), lines.join('\n'));
        const options =
          '--ignoreConfig --noEmit --strict --skipLibCheck false --module nodenext --target es2024 --lib es2025';
        const checked = run(
          join(empty, 'node_modules/.bin/tsc'),
          [...options.split(' '), '--types', 'node', 'all.ts'],
          {
            cwd: empty,
          },
        );
        expect(
          await checked.then(
            () => '',
            (error: unknown) => (error as { stdout: string }).stdout,
          ),
        ).toBe('');
      },
      timeout,
    );
  },
);

const kit = (...args: string[]) =>
  run(process.execPath, [join(project, 'node_modules/marketplace-app-kit/bin/marketplace-app-kit.mjs'), ...args], {
    cwd: project,
    env,
    timeout,
  });

test('a new project holds the room, a README and a workflow, in fewer than 400 lines, and depends on the tarball', async () => {
  const files = (await readdir(project, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile() && !`${entry.parentPath}/`.includes('/node_modules/'),
  );
  const texts = await Promise.all(files.map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')));
  expect(texts.reduce((lines, text) => lines + text.split('\n').length, 0)).toBeLessThan(400);
  expect(files.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'app.ts',
      'profile.ts',
      'README.md',
      'AGENTS.md',
      'devcontainer.json',
      'launch.json',
      'test.yml',
      '.gitignore',
      'scale.test.ts',
    ]),
  );
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
    name: string;
    dependencies: object;
  };
  expect(manifest.name).toBe('flood-mapper');
  expect(manifest.dependencies).toEqual({
    'marketplace-app-kit': expect.stringMatching(/^file:\.\.\/marketplace-app-kit-.*\.tgz$/) as string,
  });
  expect(texts.join('\n')).not.toMatch(/\.\.\/(\.\.\/)*(src\/testing\/)?index\.ts/);
});

test(
  "its types are there: the project's own type check passes, and a mistake is found",
  async () => {
    await run('tsc', [], { cwd: project, env, timeout });
    const broken = join(project, 'src/broken.ts');
    await run('sh', [
      '-c',
      `echo "import { startSandbox } from 'marketplace-app-kit/testing'; void startSandbox({ seed: 7 });" > ${broken}`,
    ]);
    await expect(run('tsc', [], { cwd: project, env, timeout })).rejects.toMatchObject({
      stdout: expect.stringContaining('broken.ts') as string,
    });
    await rm(broken);
  },
  timeout,
);

test(
  'its tests pass: the example step through the whole flow, in its own app, on the packed platform',
  async () => {
    const { stdout } = await run('vitest', ['run'], { cwd: project, env, timeout });
    expect(stdout).toMatch(/Tests +1 passed/);
  },
  timeout,
);

test(
  'its demo shows its own app, with its own step',
  async () => {
    const { stdout } = await kit('demo', '--step', 'scale', '--param', 'factor=0.5', '--out', 'out');
    expect(stdout).toMatch(/sha256 fetched +[0-9a-f]{64} +equal/);
    expect(await readdir(join(project, 'out'))).toEqual(['scaled.png', 'scaled.tif']);
  },
  timeout,
);

test(
  'the examples of examples: a test in three lines, of an app in Python',
  async () => {
    await cp(join(projectRoot, 'examples'), join(project, 'examples'), { recursive: true });
    const { stdout } = await run('vitest', ['run', '--root', 'examples/vitest', '--testTimeout', '60000'], {
      cwd: project,
      env,
      timeout,
    });
    expect(stdout).toMatch(/Tests +2 passed/);
  },
  timeout,
);

test(
  'the app in Python is judged by the packed certifier',
  async () => {
    const { stdout } = await kit(
      'certify',
      '--start',
      `python3 ${join(projectRoot, 'examples/python/app.py')}`,
      ...['approve-at-once', 'reject', 'chunk-cut', 'token-expires-rotate', 'two-users'].flatMap((id) => [
        '--scenario',
        id,
      ]),
    );
    for (const rule of [
      'upload-after-approval',
      'poll-interval',
      'poll-stops',
      'upload-identity',
      'chunk-order',
      'token-scope',
    ])
      expect(stdout).toMatch(new RegExp(`${rule} +PASSED`));
    expect(stdout).not.toMatch(/FAILED/);
  },
  timeout,
);

test(
  "new-step writes a step of the project's own, which does what every step must, and test-step says so",
  async () => {
    const { stdout } = await kit('new-step', 'snow-cover');
    expect(stdout).toContain('the step tests pass. Run it again: npx marketplace-app-kit test-step snow-cover');
    expect(await readFile(join(project, 'src/my-app/app.ts'), 'utf8')).toMatch(/steps: \[[^\]]*\bsnowCover,?\s*\]/);
    await run('tsc', [], { cwd: project, env, timeout });
    const again = await kit('test-step', 'snow-cover', '--side', '2048');
    expect(again.stdout).toMatch(/^\d+ passed, 0 failed$/m);
  },
  timeout,
);

test(
  'dev restarts the app when a file of the project changes',
  async () => {
    const dev = spawn(
      process.execPath,
      [
        join(project, 'node_modules/marketplace-app-kit/bin/marketplace-app-kit.mjs'),
        ...['dev', '--no-open', '--port', '0', '--app-port', '0'],
      ],
      { cwd: project, env, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    cleanUpLater(() => void dev.kill());
    const exited = new Promise((resolve) => dev.once('exit', resolve));
    let said = '';
    dev.stdout.on('data', (bytes) => (said += String(bytes)));
    await expect.poll(() => said, { timeout }).toMatch(/Both restart/);
    const app = join(project, 'src/my-app/app.ts');
    await writeFile(app, (await readFile(app, 'utf8')).replace("name: '", "name: 'Renamed "));
    await expect.poll(() => said, { timeout }).toMatch(/^app restarted/m);
    const url = /^app +(\S+)$/m.exec(said)?.[1] ?? '';
    expect(await (await fetch(`${url}/manifest`)).json()).toMatchObject({
      name: expect.stringMatching(/^Renamed /) as string,
    });
    dev.kill('SIGINT');
    await exited;
  },
  timeout,
);

test('steps in Python, and their helper, are in it', async () => {
  for (const path of ['steps/python/marketplace_step.py', 'steps/ndvi-python/ndvi.py'])
    expect(await readFile(join(project, 'node_modules/marketplace-app-kit/dist', path), 'utf8')).toContain('import');
});

test('--help says what there is, and what is wrong is told', async () => {
  expect((await kit('--help')).stdout).toMatch(/new FOLDER[^]*demo[^]*dev[^]*sandbox[^]*certify[^]*app/);
  for (const command of ['new', 'demo', 'dev', 'sandbox', 'certify', 'app'])
    expect((await kit(command, '--help')).stdout, command).toMatch(/^usage: [^]*\n\n/);
  await expect(kit('sandbax')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/there is no command sandbax\. Did you mean sandbox\?\n\nusage/) as string,
  });
  await expect(kit('new', '.')).rejects.toMatchObject({
    stderr: expect.stringContaining('is not empty: new wrote nothing') as string,
  });
  await expect(kit('new', 'Big Name')).rejects.toMatchObject({
    stderr: expect.stringContaining('cannot be the name of a package') as string,
  });
});

test('an app in production does without what only the sandbox needs', async () => {
  const manifest = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8')) as {
    peerDependencies: Record<string, string>;
  };
  const folder = await testFolder();
  await mkdir(folder, { recursive: true });
  const hidden = join(folder, 'hidden');
  await mkdir(hidden);
  const names = Object.keys(manifest.peerDependencies);
  const hiddenPath = (name: string) => join(hidden, name.replace('/', '+'));
  for (const name of names) await rename(join(project, 'node_modules', name), hiddenPath(name));
  try {
    await expect(kit('sandbox')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/npm install --save-dev .*busboy@\^/) as string,
    });
    // It comes as far as its settings.
    await expect(kit('app')).rejects.toMatchObject({
      stderr: expect.stringContaining('PLATFORM_URL is required') as string,
    });
  } finally {
    for (const name of names) await rename(hiddenPath(name), join(project, 'node_modules', name));
  }
});
