/** What the sandbox's process does not load: an import somewhere brings it back. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const tellAtExit = "process.on('exit', () => console.log('loaded ' + JSON.stringify(process.moduleLoadList)))";

/** Of Node's own, by the time that the process ends. */
function loadedBy(...args: readonly string[]): string[] {
  const tell = `data:text/javascript,${encodeURIComponent(tellAtExit)}`;
  const printed = execFileSync(process.execPath, ['--import', tell, ...args], { encoding: 'utf8' });
  return JSON.parse(/^loaded (.*)$/m.exec(printed)?.[1] ?? '') as string[];
}

test("the sandbox does without Node's HTTP client", () => {
  const isClient = (name: string) => name.includes('undici');
  const command = fileURLToPath(new URL('../../src/commands/sandbox.ts', import.meta.url));
  expect(loadedBy(command, '--help').filter(isClient)).toEqual([]);
  expect(loadedBy('--input-type=module', '-e', "import 'node:http'").filter(isClient)).not.toEqual([]);
});
