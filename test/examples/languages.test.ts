// @module-tag all
/** The apps of `examples` in other languages: each is certified by its start command alone, and keeps every rule. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/needs.mjs';
import { freePort } from '../../src/commands/free-port.ts';
import { projectRoot } from '../support/folders.ts';
import { needing, unless } from '../support/needs.ts';

const run = promisify(execFile);
const cli = join(projectRoot, 'bin/marketplace-app-kit.mjs');
const example = (path: string) => `'${join(projectRoot, 'examples', path)}'`;
const scenarios = ['approve-at-once', 'reject', 'chunk-cut', 'token-expires-rotate', 'rate-limited', 'two-users'];

const apps: readonly (readonly [language: string, start: string, launch: string, needs: readonly string[]])[] = [
  ['Python', `python3 ${example('python/app.py')}`, '/launch', ['python3']],
  ['Java', `java ${example('java/App.java')}`, '/launch', ['java']],
  ['Go', `go run ${example('go/main.go')}`, '/launch', ['go']],
  ['shell', `sh ${example('shell/app.sh')}`, '/cgi-bin/launch', ['curl', 'jq', 'busybox']],
];

describe.each(apps)('%s', (language, start, launch, programs) => {
  const missing = programs.filter((name) => findProgram([name], undefined) === null);
  const need = unless(missing.length === 0, `there is no ${missing.join(', ')} here`, `install ${missing.join(', ')}`);

  test('is judged by its start command, and keeps every rule', { ...needing(need), timeout: 600_000 }, async () => {
    const launchUrl = `http://127.0.0.1:${await freePort()}${launch}`;
    const args = ['certify', '--start', start, '--launch-url', launchUrl];
    const { stdout } = await run(process.execPath, [cli, ...args, ...scenarios.flatMap((id) => ['--scenario', id])], {
      timeout: 600_000,
    });
    for (const rule of ['upload-after-approval', 'poll-interval', 'poll-stops', 'upload-identity', 'chunk-order', 'no-work-after-refusal', 'token-scope'])
      expect(stdout, language).toMatch(new RegExp(`${rule} +PASSED`)); // oxfmt-ignore
    expect(stdout).toMatch(/FINISHED PASSED/);
  });
});
