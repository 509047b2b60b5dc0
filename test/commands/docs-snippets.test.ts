/**
 * Pieces of code about steps in the docs are only text until somebody copies them. Each is compiled, and its declarations
 * are held to the app's own rules.
 */
import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { beforeAll, expect, test } from 'vitest';
import { checkDefinition } from '../../src/app/definition/check-definition.ts';
import { readCases } from '../../src/testing/step-battery/cases.ts';
import type { AnyStep } from '../../src/steps/step.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { needing, python } from '../support/needs.ts';
import { onlyInAll } from '../support/tags.ts';

interface Snippet {
  readonly page: string;
  readonly language: string;
  readonly code: string;
}

async function snippetsOf(page: string): Promise<Snippet[]> {
  const text = await readFile(join(projectRoot, 'docs', page), 'utf8');
  return [...text.matchAll(/^( *)```(ts|json|python)\n([^]*?)^ *```$/gm)].map(
    ([, indent = '', language = '', code = '']) => ({
      page,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  );
}

const pages = ['steps.md', 'steps-inputs-outputs.md', 'steps-python.md', 'steps-testing.md', 'inference.md'];
const all = (await Promise.all(pages.map(snippetsOf))).flat();
const isWork = ({ code }: Snippet) => code.includes('export default async function work');
const inTypeScript = all.filter(({ language }) => language === 'ts');
const shown = inTypeScript.filter((snippet) => !isWork(snippet));
/** The module that does the work of the piece before it. */
const workAfter = (snippet: Snippet) => inTypeScript[inTypeScript.indexOf(snippet) + 1];

/** Code that replaces `// ...`, and code around a fragment of a declaration. */
const around = `
const given = {
  id: 'shown',
  version: '1.0.0',
  title: 'Shown',
  description: 'In the docs.',
  parameters: theirs.z.object({ scale: theirs.z.number().min(0).max(9).default(1).meta({ title: 'Scale', description: 'Any.' }) }),
} as const;
const input = { input: { description: 'Any.', synthetic: 'elevation' } } as const;
const output = { output: { fileName: 'a.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } } } as const;
`;

/** A module whose default export is an app or a step. */
function moduleOf(code: string): string {
  const kit = `import * as theirs from 'marketplace-app-kit';\n`;
  const named = code
    .replaceAll(/'(?:\.\.\/)+index\.ts'/g, `'marketplace-app-kit'`)
    .replaceAll(/'(?:\.\.\/)+steps\/raster\.ts'/g, `'marketplace-app-kit/raster'`);
  if (/^(inputs|outputs):/.test(code)) {
    const rest = code.startsWith('inputs') ? '...output' : '...input';
    return `${kit}${around}export default theirs.defineStep({ ...given, ${rest},\n${code} run: () => Promise.resolve() });\n`;
  }
  if (named.includes('defineApp'))
    return `${kit}import scale from '${join(projectRoot, 'src/my-app/steps/scale/index.ts')}';
const { defineApp, ndvi, spectralIndex } = theirs;
const app = { module: import.meta.url, id: 'shown', name: 'Shown', description: 'In the docs.' };
${named.replace('// ...', '...app,')}`;
  const made = /^const (\w+) = /m.exec(named)?.[1];
  if (!named.includes('// ...'))
    return made && !named.includes('export default') ? `${named}\nexport default ${made};\n` : named;
  return `${kit}${around}${named.replace('// ...', '...given, ...input, ...output,')}`;
}

let folder: string;
const fileOf = (i: number) => join(folder, `shown-${i}`, 'index.ts');

beforeAll(async () => {
  folder = await testFolder();
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  for (const [i, snippet] of shown.entries()) {
    const { code } = snippet;
    await mkdir(join(folder, `shown-${i}`));
    await writeFile(fileOf(i), moduleOf(code));
    if (code.includes(`import('./work.ts')`))
      await writeFile(join(fileOf(i), '../work.ts'), moduleOf(workAfter(snippet)!.code));
    await cp(join(projectRoot, 'src/sandbox/models/water'), join(folder, `shown-${i}`, 'models/water'), {
      recursive: true,
    });
    await cp(join(projectRoot, 'src/my-app/steps/scale/cases.json'), join(folder, `shown-${i}`, 'cases.json'));
  }
});

test('there is something to compile', () => {
  expect(shown.length).toBeGreaterThanOrEqual(8);
  expect(inTypeScript.length).toBeGreaterThan(shown.length);
});

test('every piece of TypeScript compiles', { tags: [onlyInAll], timeout: 900_000 }, () => {
  const { config } = ts.readConfigFile(join(projectRoot, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(
    {
      ...config.compilerOptions,
      typeRoots: [join(projectRoot, 'node_modules/@types')],
      paths: {
        'marketplace-app-kit': [join(projectRoot, 'src/index.ts')],
        'marketplace-app-kit/raster': [join(projectRoot, 'src/steps/raster.ts')],
        'gdal-async': [join(projectRoot, 'node_modules/gdal-async/lib/index.d.ts')],
      },
    },
    projectRoot,
  );
  const program = ts.createProgram(
    shown.map((_, i) => fileOf(i)),
    options,
  );
  const problems = shown.flatMap(({ page, code }, i) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(fileOf(i)))
      .concat(ts.getPreEmitDiagnostics(program, program.getSourceFile(join(fileOf(i), '../work.ts'))))
      .map(
        ({ messageText }) => `${page}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}, in ${code.slice(0, 200)}`,
      ),
  );
  expect(problems).toEqual([]);
});

test('what it declares is what the app takes', async () => {
  for (const [i, { code }] of shown.entries()) {
    // The kit as the tests have it, and not as the package would.
    const text = (await readFile(fileOf(i), 'utf8')).replaceAll(
      `'marketplace-app-kit'`,
      `'${pathToFileURL(join(projectRoot, 'src/index.ts')).href}'`,
    );
    await writeFile(fileOf(i), text);
    // The page shows its program before it.
    for (const [, name] of text.matchAll(/python: new URL\('\.\/([\w-]+\.py)'/g))
      await writeFile(join(fileOf(i), '..', name!), 'import marketplace_step');
    const { default: made } = (await import(pathToFileURL(fileOf(i)).href)) as {
      default: AnyStep | { steps: AnyStep[] };
    };
    const steps = 'steps' in made ? made.steps : [made];
    const app = {
      module: pathToFileURL(fileOf(i)).href,
      id: 'shown',
      name: 'Shown',
      description: 'In the docs.',
      steps,
    };
    expect(() => checkDefinition(app), code).not.toThrow();
  }
});

test('the cases that it shows are cases, and its descriptions are JSON', async () => {
  const described = all.filter(({ language }) => language === 'json');
  expect(described.length).toBeGreaterThanOrEqual(2);
  for (const { code } of described) {
    const value = JSON.parse(code) as object;
    if (!('cases' in value)) continue;
    const path = join(folder, 'shown-cases.json');
    await writeFile(path, code);
    expect(readCases(pathToFileURL(path)).cases.length).toBeGreaterThan(0);
  }
});

test('the Python that it shows runs with the kit’s helper', needing(python), async () => {
  const shown = all.filter(({ language }) => language === 'python').map(({ code }) => code);
  const [code = '', ...others] = shown.filter((one) => one.includes('refuse('));
  expect(others).toEqual([]);
  // The other snippets only need to parse. test/steps/command.test.ts runs such steps.
  for (const one of shown)
    expect(execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.argv[1])', one], { encoding: 'utf8' })).toBe(
      '',
    );
  const job = { parameters: { band: 'red' }, inputs: [{ path: 'a.tif', bands: [{ names: ['red'] }] }], namedInputs: {}, output: 'o.tif', outputs: {}, metadata: {}, workFolder: folder }; // oxfmt-ignore
  await writeFile(join(folder, 'job.json'), JSON.stringify(job));
  await writeFile(join(folder, 'shown.py'), code);
  const run = () =>
    execFileSync('python3', ['shown.py', 'job.json'], {
      cwd: folder,
      env: { ...process.env, PYTHONPATH: join(projectRoot, 'src/steps/python') },
      encoding: 'utf8',
      stdio: 'pipe',
    });
  // It ends as it shows: the input is refused.
  expect(run).toThrow();
  expect(JSON.parse(await readFile(join(folder, 'error.json'), 'utf8'))).toMatchObject({
    message: 'there is no snow in this scene',
  });
});
