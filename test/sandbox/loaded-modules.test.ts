/** What the sandbox's process does not load: an import somewhere brings it back. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const modules = ['../../src/sandbox/index.ts', '../../src/serve.ts', '../../src/commands/confine.ts'];

/** Of Node's own, after these are imported. */
function loadedBy(imports: readonly string[]): string[] {
  const script = `${imports.map((one) => `await import(${JSON.stringify(one)});`).join('')} console.log(JSON.stringify(process.moduleLoadList));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  return JSON.parse(printed) as string[];
}

test("the sandbox does without Node's HTTP client", () => {
  const isClient = (name: string) => name.includes('undici');
  expect(loadedBy(modules.map((one) => new URL(one, import.meta.url).href)).filter(isClient)).toEqual([]);
  expect(loadedBy(['node:http']).filter(isClient)).not.toEqual([]);
});
