// @module-tag all
/** The sandbox and certifier as somebody has them who works in another language: one tarball, and nothing of this repository. */
import { execFile, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, sharedFolder } from '../support/folders.ts';
import { needing, registry } from '../support/needs.ts';

const run = promisify(execFile);
const timeout = 900_000;
const npm = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
const apiKey = 'a-key-for-an-app-in-python';

describe('on the oldest Node that it promises, without GDAL and bubblewrap', needing(await registry()), () => {
  let project: string;
  let node: string;
  let python: string;

  beforeAll(async () => {
    const folder = await sharedFolder();
    [project, node] = [
      join(folder, 'project'),
      join(folder, 'node/node_modules', `node-linux-${process.arch}/bin/node`),
    ];
    await run(process.execPath, [join(projectRoot, 'scripts/sandbox-package.mjs'), folder], {
      env: { ...process.env, INIT_CWD: folder },
    });
    const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
    await mkdir(project);
    await writeFile(join(project, 'package.json'), '{"name":"somebody","private":true,"type":"module"}');
    await run('npm', ['install', ...npm, join(folder, tarball)], { cwd: project });
    const { engines } = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8')) as {
      engines: { node: string };
    };
    const oldest = `${/^>=(\d+\.\d+)$/.exec(engines.node)?.[1]}.0`;
    await run('npm', ['install', ...npm, '--prefix', join(folder, 'node'), `node-linux-${process.arch}@${oldest}`]);
    python = (await run('sh', ['-c', 'command -v python3'])).stdout.trim();
  }, timeout);

  /** Its PATH has neither bwrap nor another Node. */
  const command = (...args: string[]) =>
    [node, [join(project, 'node_modules/marketplace-sandbox/bin/marketplace-sandbox.mjs'), ...args]] as const;
  const environment = { PATH: '/bin:/nowhere', SANDBOX_API_KEY: apiKey };

  test('it has the platform, and neither app nor steps nor a native build', async () => {
    const rooms = await readdir(join(project, 'node_modules/marketplace-sandbox/dist'));
    expect(rooms).toEqual(expect.arrayContaining(['commands', 'contract', 'sandbox']));
    expect(rooms).not.toEqual(expect.arrayContaining(['app']));
    expect(rooms).not.toEqual(expect.arrayContaining(['steps']));
    const installed = await readdir(join(project, 'node_modules'));
    expect(
      installed.filter((name) => /^(gdal-async|sharp|onnxruntime-node|kysely|pg|node-linux-.*)$/.test(name)),
    ).toEqual([]);
  });

  test('the sandbox starts, says what it does without, and stops', async () => {
    const [program, args] = command('sandbox', '--port', '0', '--data', join(project, 'data'));
    const child = spawn(program, args, { cwd: project, env: environment });
    cleanUpLater(() => void child.kill('SIGKILL'));
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (printed += String(bytes)));
    await expect.poll(() => printed, { timeout: 120_000 }).toMatch(/^sandbox ready http/m);
    expect(printed).toContain(
      'uploaded files are not inspected, and rasters are not drawn: GDAL is not installed here',
    );
    const [, url = ''] = /^sandbox ready (\S+)$/m.exec(printed) ?? [];
    for (const path of ['/', '/catalog', '/files', '/inference', '/launches', '/openapi.json'])
      expect((await fetch(`${url}${path}`)).status, path).toBe(200);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  test(
    'the app in Python is certified by it',
    async () => {
      const app = join(project, 'node_modules/marketplace-sandbox/examples/python/app.py');
      const scenarios = ['approve-at-once', 'reject', 'chunk-cut'].flatMap((id) => ['--scenario', id]);
      const [program, args] = command(
        'certify',
        '--start',
        `${python} '${app}'`,
        ...scenarios,
        '--html',
        'report.html',
      );
      const { stdout } = await run(program, args, { cwd: project, env: environment }).catch((error: unknown) => error as { stdout: string }); // oxfmt-ignore
      expect(stdout).toMatch(/finished +approve-at-once/);
      expect(stdout).toMatch(/finished +chunk-cut/);
      expect(stdout).not.toMatch(/FAILED|INTERRUPTED/);
      expect(await readFile(join(project, 'report.html'), 'utf8')).toContain('upload-after-approval');
    },
    timeout,
  );

  test(
    'the action certifies an app, and leaves reports and a badge',
    async () => {
      const action = parse(await readFile(join(projectRoot, 'action.yml'), 'utf8')) as {
        inputs: Record<string, { default: string }>;
        runs: { steps: { run?: string; env?: Record<string, string> }[] };
      };
      const step = action.runs.steps.find(({ run: script }) => script !== undefined)!;
      const given: Record<string, string> = {
        start: `${python} ${join(projectRoot, 'examples/python/app.py')}`,
        package: `./${(await readdir(join(project, '..'))).find((name) => name.endsWith('.tgz'))}`,
      };
      const inputs = Object.fromEntries(
        Object.entries(step.env!).map(([name, text]) => {
          const [, input = ''] = /inputs\.([a-z-]+)/.exec(text) ?? [];
          return [name, given[input] ?? action.inputs[input]!.default];
        }),
      );
      const env: NodeJS.ProcessEnv = { ...process.env, ...inputs, npm_config_loglevel: 'error' };
      // npm sets it for its scripts, and the workflow has none.
      delete env['INIT_CWD'];
      const cwd = join(project, '..');
      const { stdout } = await run('bash', ['-e', '-c', step.run!], { cwd, env });
      expect(stdout).toMatch(/FINISHED PASSED/);
      expect((await readdir(join(cwd, 'certification'))).toSorted()).toEqual([
        ...['badge.json', 'report.html', 'report.json', 'report.xml'],
      ]);
      expect(JSON.parse(await readFile(join(cwd, 'certification/badge.json'), 'utf8'))).toEqual({
        ...{ schemaVersion: 1, label: 'marketplace', message: 'exemplary', color: 'brightgreen' },
      });
    },
    timeout,
  );

  test.each([
    [
      ['certify'],
      /certify needs --launch-url or --start, because this package contains no app\n\nusage: npx marketplace-sandbox certify/,
    ],
    [['drift', '--platform', 'http://127.0.0.1:9'], /drift compares rasters too, so its own sandbox needs GDAL/],
    [['certfy'], /there is no command certfy\. Did you mean certify\?/],
    [
      ['certify', '--launch-url', 'http://127.0.0.1:9/launch', '--challenge', 'x', '--port', '0'],
      /GDAL is not installed here/,
    ],
  ])('%j is refused with a sentence', async (args, message) => {
    const [program, line] = command(...args);
    await expect(run(program, line, { cwd: project, env: environment })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(message) as string,
    });
  });
});
