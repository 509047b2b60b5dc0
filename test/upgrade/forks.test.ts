/** Forks of an older kit, made as people make them, taken to this one. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { makeFolder, projectRoot } from '../support/folders.ts';
import { skipAloud } from '../support/skipped.ts';

const run = promisify(execFile);
const timeout = 600_000;
const { commit } = JSON.parse(readFileSync(join(projectRoot, 'releases/0.1.0.json'), 'utf8')) as { commit: string };
const hasHistory = isThere();

function isThere(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', commit], { cwd: projectRoot, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A kit to take from: this one as it is, committed or not. */
let kit: string;
let root: string;

beforeAll(async () => {
  if (!hasHistory) return;
  root = await makeFolder();
  cleanUpLater(() => rm(root, { recursive: true, force: true }));
  kit = join(root, 'kit');
  await run('git', ['clone', '-q', '--shared', projectRoot, kit]);
  for (const name of await readdir(kit)) if (name !== '.git') await rm(join(kit, name), { recursive: true });
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: projectRoot,
  });
  for (const path of stdout.split('\0').filter((one) => one !== '' && existsSync(join(projectRoot, one)))) {
    await mkdir(dirname(join(kit, path)), { recursive: true });
    await cp(join(projectRoot, path), join(kit, path));
  }
  await identify(kit);
  await run('git', ['add', '-A'], { cwd: kit });
  await run('git', ['commit', '-q', '--allow-empty', '-m', 'the kit as it is'], { cwd: kit });
  await run('git', ['branch', '-f', 'release'], { cwd: kit });
}, timeout);

const identify = async (folder: string) => {
  await run('git', ['config', 'user.name', 'Somebody'], { cwd: folder });
  await run('git', ['config', 'user.email', 'somebody@example.org'], { cwd: folder });
};

type Edit = (text: string) => string;

/** A fork of 0.1.0 in which these files were written, or edited, and committed. */
async function fork(name: string, edits: Readonly<Record<string, string | Buffer | Edit>>): Promise<string> {
  const folder = join(root, name);
  await run('git', ['clone', '-q', '--shared', projectRoot, folder]);
  await run('git', ['checkout', '-q', '-B', 'main', commit], { cwd: folder });
  await identify(folder);
  for (const [path, edit] of Object.entries(edits)) {
    const at = join(folder, path);
    await mkdir(dirname(at), { recursive: true });
    const before = typeof edit === 'function' ? await readFile(at, 'utf8') : '';
    const after = typeof edit === 'function' ? edit(before) : edit;
    expect(after, path).not.toBe(before);
    await writeFile(at, after);
  }
  await run('git', ['add', '-A'], { cwd: folder });
  await run('git', ['commit', '-q', '-m', 'ours'], { cwd: folder });
  await run('cp', ['-al', join(projectRoot, 'node_modules'), join(folder, 'node_modules')]).catch(() =>
    run('cp', ['-a', join(projectRoot, 'node_modules'), join(folder, 'node_modules')]),
  );
  return folder;
}

const env = { ...process.env, NO_COLOR: '1', INIT_CWD: undefined, MY_APP: undefined };
async function upgrade(folder: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const wanted = args.length > 0 ? args : ['--from', kit, '--to', 'release'];
  return run(process.execPath, [join(projectRoot, 'scripts/upgrade.mjs'), ...wanted], { cwd: folder, env }).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      said: error.stdout + error.stderr,
    }),
  );
}
const inFork = (folder: string, ...args: string[]) =>
  run(process.execPath, ['--import', './scripts/preload.mjs', ...args], { cwd: folder, env, timeout });
const text = (folder: string, path: string) => readFile(join(folder, path), 'utf8');
const git = async (folder: string, ...args: string[]) => (await run('git', args, { cwd: folder })).stdout.trim();
const typeCheck = (folder: string) =>
  run(process.execPath, ['node_modules/typescript/bin/tsc', '--noEmit', '-p', '.'], { cwd: folder, env });
/** The fork's own test: the flow with its own step, by the command that both kits have. */
const ownTest = (folder: string) =>
  inFork(folder, 'src/commands/demo.ts', '--step', 'double', '--param', 'factor=3', '--out', 'data/out');
/** On a port of its own: others certify beside it. */
const certify = async (folder: string, port: number) =>
  (
    await inFork(
      folder,
      'src/commands/certify.ts',
      '--port',
      String(port),
      '--scenario',
      'approve-at-once',
      '--scenario',
      'reject',
    ).catch((error: { stdout: string }) => error)
  ).stdout;

const step = readFileSync(join(projectRoot, 'test/upgrade/step-of-0.1.0.txt'), 'utf8');
const ownStep: Record<string, string | Edit> = {
  'src/steps/double/index.ts': step,
  'src/steps/registry.ts': (before) =>
    before
      .replace(
        "import cog from './cog/index.ts';",
        "import cog from './cog/index.ts';\nimport double from './double/index.ts';",
      )
      .replace('[ndvi, cog, hillshade]', '[double, ndvi, cog]'),
};
const freePort = (i: number) => 24_000 + (process.pid % 8_000) * 4 + i;

if (!hasHistory)
  skipAloud(
    'forks of 0.1.0',
    'this clone is shallow, and its history does not hold that commit (git fetch --unshallow)',
  );

describe.runIf(hasHistory)('a fork of 0.1.0', () => {
  test(
    'with a step and pages of its own: they move to its room, and its own test and certify pass',
    { timeout },
    async () => {
      const folder = await fork('own-step', {
        ...ownStep,
        'templates/app/launch.eta': (before) =>
          before.replace('<h1>Process and deliver</h1>', '<h1>Double everything</h1>'),
        'templates/shared/style.css': (before) => `${before}\n.ours { color: rebeccapurple; }\n`,
      });
      const { code, said } = await upgrade(folder);
      expect(said).toMatch(/your lines {2}\d+: \d+ kept, \d+ rewritten by migrations, 0 lost/);
      expect(code).toBe(0);
      expect(await git(folder, 'status', '--porcelain')).toBe('');
      expect(await text(folder, 'src/my-app/app.ts')).toMatch(
        /import double from '\.\/steps\/double\/index\.ts';[^]*steps: \[double, ndvi, cog\],/,
      );
      expect(existsSync(join(folder, 'src/steps/double'))).toBe(false);
      expect(await text(folder, 'templates/my-app/launch.eta')).toContain('Double everything');
      expect(await text(folder, 'templates/my-app/shared/style.css')).toContain('.ours');
      expect(await text(folder, 'templates/app/launch.eta')).toBe(await text(projectRoot, 'templates/app/launch.eta'));
      await typeCheck(folder);
      expect((await ownTest(folder)).stdout).toMatch(/sha256 fetched +[0-9a-f]{64} +equal/);
      const certified = await certify(folder, freePort(0));
      expect(certified).toMatch(/FINISHED/);
      expect(certified).not.toMatch(/FAILED/);
      // Once more: there is nothing to do.
      expect(await upgrade(folder)).toMatchObject({
        code: 0,
        said: expect.stringContaining('nothing to do') as string,
      });
      expect((await ownTest(folder)).stdout).toContain('equal');
    },
  );

  test(
    'with a wire of its own: the to-do names the line where it stands now, and a profile takes its place',
    { timeout },
    async () => {
      const folder = await fork('own-profile', {
        'src/contract/wire-profile.ts': (before) =>
          before.replace("export const launchTokenField = 'token';", "export const launchTokenField = 'session';"),
      });
      const { code, said } = await upgrade(folder);
      expect(code).toBe(0);
      const [, place = '', line] = /to do +own-contract (src\/contract\/\S+):(\d+): /.exec(said) ?? [];
      expect((await text(folder, place)).split('\n')[Number(line) - 1]).toContain("launchTokenField = 'session'");
      expect(said).toMatch(/your lines {2}1: 1 kept/);
      // It works as it is, and as the to-do wants it.
      expect(await certify(folder, freePort(1))).not.toMatch(/FAILED|no answer/);
      await git(folder, 'checkout', '-q', await git(folder, 'rev-parse', 'HEAD^2'), '--', 'src/contract');
      await writeFile(
        join(folder, 'src/my-app/profile.ts'),
        "import { wireProfile } from '../index.ts';\n\nexport default wireProfile({ name: 'ours', launchTokenField: 'session' });\n",
      );
      await typeCheck(folder);
      expect(await certify(folder, freePort(1))).not.toMatch(/FAILED|no answer/);
    },
  );

  test('with an edited core file: an edit that only the layout was in the way of merges', { timeout }, async () => {
    const folder = await fork('own-core', {
      'src/commands/dev/watch-files.ts': (before) =>
        before
          .replace('ignoreInitial: true,', 'ignoreInitial: true, usePolling: false,')
          .replace("watcher.on('error', (error) =>", "watcher.on('error', (error: unknown) =>"),
    });
    expect(await upgrade(folder)).toMatchObject({ code: 0, said: expect.stringMatching(/[12] kept/) as string });
    expect(await text(folder, 'src/commands/dev/watch-files.ts')).toContain('usePolling: false');
    await typeCheck(folder);
  });

  test(
    'with an edit where the kit was edited: the conflict names the line, both sides are in it, and --abort gives back what was',
    { timeout },
    async () => {
      const folder = await fork('own-conflict', {
        'src/app/create-app.ts': (before) =>
          before.replace(
            'const profile = options.profile ?? assumedProfile;',
            'const profile = options.profile ?? ourProfile; // ours',
          ),
      });
      const before = await git(folder, 'rev-parse', 'HEAD');
      const { code, said } = await upgrade(folder);
      expect(code).toBe(1);
      const [, line] = /src\/app\/create-app\.ts:(\d+)/.exec(said) ?? [];
      const lines = (await text(folder, 'src/app/create-app.ts')).split('\n');
      expect(lines[Number(line) - 1]).toMatch(/^<<<<<<< /);
      expect(lines.join('\n')).toMatch(/<<<<<<< [^]*\/\/ ours[^]*=======[^]*>>>>>>> /);
      expect((await upgrade(folder)).said).toMatch(/commit or stash|upgrade is under way/);
      // Whoever has gone on from there keeps what they did.
      const later = await fork('own-conflict-later', {
        'src/app/create-app.ts': (one) =>
          one.replace(
            'const profile = options.profile ?? assumedProfile;',
            'const profile = options.profile ?? ourProfile; // ours',
          ),
      });
      await upgrade(later);
      await git(later, 'merge', '--abort');
      await writeFile(join(later, 'more.txt'), 'later work\n');
      await git(later, 'add', '-A');
      await git(later, 'commit', '-q', '-m', 'later work');
      expect((await upgrade(later, '--continue')).said).toContain('the merge is not whole');
      expect((await upgrade(later, '--abort')).said).toContain('you have gone on since');
      expect(await text(later, 'more.txt')).toBe('later work\n');
      expect((await upgrade(folder, '--abort')).code).toBe(0);
      expect([await git(folder, 'rev-parse', 'HEAD'), await git(folder, 'status', '--porcelain')]).toEqual([
        before,
        '',
      ]);
    },
  );

  test(
    'whose step cannot be converted: the to-do names the line, and npm test fails until it is done',
    { timeout },
    async () => {
      const folder = await fork('own-todo', {
        ...ownStep,
        'src/steps/double/index.ts': step.replace('parameters: {', 'parameters: {\n    ...{},'),
      });
      expect((await upgrade(folder)).said).toMatch(
        /to do +own-steps src\/my-app\/steps\/double\/index\.ts: write the parameters as z\.object/,
      );
      const todo = () =>
        run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', 'test/upgrade/todo.test.ts'], {
          cwd: folder,
          env,
        });
      await expect(todo()).rejects.toThrow(/own-steps/);
      await rm(join(folder, 'UPGRADE-TODO.md'));
      await todo();
    },
  );

  test(
    'a tree with changes is refused, and so is a kit with another history; nothing is touched',
    { timeout },
    async () => {
      const folder = await fork('dirty', { 'notes.txt': 'ours\n' });
      await writeFile(join(folder, 'notes.txt'), 'changed\n');
      expect(await upgrade(folder)).toMatchObject({ code: 1, said: expect.stringContaining('notes.txt') as string });
      expect(await text(folder, 'notes.txt')).toBe('changed\n');
      await git(folder, 'checkout', '-q', 'notes.txt');
      const stranger = join(root, 'stranger');
      await run('git', ['init', '-q', stranger]);
      await identify(stranger);
      await run('git', ['commit', '-q', '--allow-empty', '-m', 'x'], { cwd: stranger });
      expect((await upgrade(folder, '--from', stranger, '--to', 'HEAD')).said).toContain('no commit in common');
      expect((await upgrade(folder, '--continue')).said).toContain('no upgrade is under way');
      expect((await upgrade(folder, '--from', kit)).said).toContain('give --from and --to');
    },
  );

  test(
    'in a linked worktree, with pictures and a package of its own: bytes stay bytes, and npm knows the package',
    { timeout },
    async () => {
      const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x00, 0xff, 0xfe, 0x3c, 0x3c, 0x3c]);
      const main = await fork('own-bytes', {
        'templates/app/assets/logo.png': picture,
        'templates/shared/map/natural-earth.pmtiles': picture,
        'vendor/our-lib/package.json': '{ "name": "our-lib", "version": "1.0.0", "license": "MIT" }\n',
        'package.json': (before) =>
          before.replace('"dependencies": {', '"dependencies": {\n    "our-lib": "file:vendor/our-lib",'),
      });
      const folder = `${main}-worktree`;
      await git(main, 'worktree', 'add', '-q', '-b', 'upgraded', folder);
      await cp(join(main, 'node_modules/prettier'), join(folder, 'node_modules/prettier'), { recursive: true });
      const { code, said } = await upgrade(folder);
      expect(said).toMatch(/own-packages package-lock\.json/);
      expect(code).toBe(0);
      for (const path of ['assets/logo.png', 'shared/map/natural-earth.pmtiles'])
        expect((await readFile(join(folder, 'templates/my-app', path))).equals(picture), path).toBe(true);
      const { packages } = JSON.parse(await text(folder, 'package-lock.json')) as {
        packages: Record<string, { dependencies: object; version?: string }>;
      };
      expect(packages['']?.dependencies).toHaveProperty('our-lib', 'file:vendor/our-lib');
      expect(packages['vendor/our-lib']?.version).toBe('1.0.0');
      expect(packages['node_modules/zod']?.version).toBeDefined();
      // The other tree is as it was.
      expect(await git(main, 'status', '--porcelain')).toBe('');
      expect(existsSync(join(main, 'src/my-app'))).toBe(false);
    },
  );

  test('killed with -9 at any moment: --abort, or the next try, finds what was', { timeout }, async () => {
    const folder = await fork('killed', ownStep);
    const before = await git(folder, 'rev-parse', 'HEAD');
    const asBefore = async () => [await git(folder, 'rev-parse', 'HEAD'), await git(folder, 'status', '--porcelain')];
    const outcomes: string[] = [];
    for (const afterMs of [100, 200, 300, 450, 600, 800, 1_000, 1_300, 1_700]) {
      const child = spawn(
        process.execPath,
        [join(projectRoot, 'src/upgrade/upgrade.ts'), '--from', kit, '--to', 'release'],
        { cwd: folder, env, stdio: 'ignore', detached: true },
      );
      await sleep(afterMs);
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It had ended.
      }
      await sleep(50);
      const continued = await upgrade(folder, '--continue');
      if (continued.code === 0) {
        // What it goes on with is what a whole one makes.
        expect(await text(folder, 'src/my-app/app.ts'), `after ${afterMs} ms`).toContain('steps: [double, ndvi, cog],');
        expect(existsSync(join(folder, 'src/steps/double'))).toBe(false);
        await git(folder, 'reset', '-q', '--hard', before);
        outcomes.push('continued');
      } else if (/no upgrade is under way/.test(continued.said)) {
        outcomes.push((await git(folder, 'rev-parse', 'HEAD')) === before ? 'not begun' : 'done');
        await git(folder, 'reset', '-q', '--hard', before);
      } else {
        const aborted = await upgrade(folder, '--abort');
        expect(aborted, `after ${afterMs} ms: ${continued.said}`).toMatchObject({ code: 0 });
        outcomes.push('aborted');
      }
      expect(await asBefore(), `after ${afterMs} ms, ${outcomes.join()}`).toEqual([before, '']);
    }
    expect(new Set(outcomes).size).toBeGreaterThan(1);
    expect((await upgrade(folder)).code).toBe(0);
    expect(existsSync(join(folder, 'src/my-app/steps/double/index.ts'))).toBe(true);
  });
});
