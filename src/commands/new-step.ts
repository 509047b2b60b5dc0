import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { FormatConfig } from 'oxfmt';
import * as z from 'zod';
import stepJobAddress from './new-step/step-job-address.ts';
import { loadApp } from '../app/definition/load-app.ts';
import { extensionsOf } from '../app/processing/run-input.ts';
import type { StepJobInput } from '../app/processing/step-job.ts';
import { KitError } from '../contract/index.ts';
import { confinementSettings, confinementVariables, runInChild, type Confinement } from '../child/index.ts';
import { kitCommand, messageOf, ownJson, scratchFolder, scriptCommand } from '../files/index.ts';
import { batteryOf, casesOf } from '../testing/step-battery/index.ts';
import type { Looked } from '../testing/step-battery/look-job.ts';
import { wrongArguments } from './arguments.ts';
import { defineCommand } from './command.ts';
import { confine } from './confine.ts';
import { loadMyApp } from './my-app.ts';
import { argvOf } from './new-step/argv.ts';
import { registered } from './new-step/register.ts';
import {
  commandStep,
  defaultBands,
  factorCases,
  pythonProgram,
  pythonStep,
  testFile,
  typescriptStep,
  type Left,
  type StepNames,
} from './new-step/templates.ts';

const usage = `usage: ${scriptCommand('new-step')} ID [options]: a step of your own, with its cases and its test

  --lang ts|python   Language of the step (default: ts)
  --bands NAMES      Bands that it reads, separated by commas: --bands green,swir16 (default: one band)
  --from COMMAND     A program for the work: 'gdaldem slope <input> <output>', quoted; the app runs it confined, without a shell
  --file NAME        Name of the file that the program writes (default: ID.tif)

Writes the folder of the step, registers it in your app, and runs the step tests (${kitCommand} test-step ID).`;

/** A line for each case. */
function json({
  cases = [],
  ...head
}: { readonly cases?: readonly object[] } & Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(head).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`);
  return `{\n${lines.join('')}  "cases": [\n${cases.map((stepCase) => `    ${JSON.stringify(stepCase)}`).join(',\n')}\n  ]\n}\n`;
}

/** Words that cannot name an argument in TypeScript or in Python, and names that the generated code uses itself. */
const reserved = new Set(
  'and any as assert async await band break case class const continue def default del delete do elif else enum eval except export extends factor false finally for from function global if implements import in instanceof interface is lambda let new nonlocal not null or package pass private protected public raise return static super switch this throw true try typeof undefined var void while with yield z'.split(
    ' ',
  ),
);

const tinyInput = {
  name: 'heights.tif',
  width: 8,
  height: 6,
  type: 'Float32',
  bands: [{ name: 'elevation', values: '100 + 3 * x + 6 * y + mod(x * y, 4)' }],
};

export default defineCommand(import.meta, {
  usage,
  allowPositionals: true,
  options: {
    lang: { type: 'string', default: 'ts' },
    bands: { type: 'string' },
    from: { type: 'string' },
    file: { type: 'string' },
  },
  async run({ values, positionals }) {
    const [id, more] = positionals;
    if (id === undefined || more !== undefined)
      throw wrongArguments('new-step needs one argument: the id of the step', usage);
    if (!/^[a-z][a-z0-9-]{0,63}$/.test(id))
      throw wrongArguments(`${id} cannot be the id of a step: use a-z, 0-9 and -, first a letter`, usage);
    const lang = values.from === undefined ? values.lang : 'command';
    if (!['ts', 'python', 'command'].includes(lang)) throw wrongArguments(`--lang ${lang} must be ts or python`, usage);
    const bands = bandNames(values.bands, lang);
    const definition = await loadMyApp();
    if (definition.steps.some((step) => step.id === id))
      throw new KitError('bad_arguments', `your app has a step ${id}`);

    const appFile = fileURLToPath(definition.module);
    const folder = join(dirname(appFile), 'steps', id);
    if (existsSync(folder)) throw new KitError('bad_arguments', `${folder} is there already: new-step wrote nothing`);
    const app = await readFile(appFile, 'utf8');
    const [, kitOfApp = 'marketplace-app-kit'] = /from '([^']+)'/.exec(/import \{[^}]*\bdefineApp\b[^}]*\} from '[^']+'/.exec(app)?.[0] ?? '') ?? []; // oxfmt-ignore
    const names: StepNames = {
      id,
      variable: id.replace(/-+(.)?/g, (_, letter: string | undefined) => letter?.toUpperCase() ?? ''),
      title: `${id.charAt(0).toUpperCase()}${id.slice(1).replaceAll('-', ' ')}`,
      kit: kitOfApp.startsWith('.') ? `../../${kitOfApp}` : kitOfApp,
    };
    const changed = registered(app, names.variable, `./steps/${id}/index.ts`);
    if (changed === null)
      throw new KitError(
        'bad_arguments',
        `${appFile} lists its steps in a way that new-step cannot change: write steps: [...]`,
      );

    const read = z.object(confinementVariables).parse(process.env);
    const confinement = await confine(confinementSettings(process.env, read), []);
    const files: Record<string, string> = {};
    if (lang === 'command') {
      const fileName = values.file ?? `${id}.tif`;
      const argv = argvOf(values.from ?? '', usage);
      refuseFilesOfTheMachine(argv);
      const looked = await tryOut(names, argv, fileName, tinyInput, confinement);
      // If a program keeps the type of its input, its declaration says so.
      const typesOf = ({ left }: typeof looked) =>
        left && 'bands' in left && left.bands !== 'as-input' ? left.bands.map(({ dataType }) => dataType).join() : '';
      const follows =
        typesOf(looked) === tinyInput.type &&
        typesOf(await tryOut(names, argv, fileName, { ...tinyInput, type: 'Byte' }, confinement)) === 'Byte';
      files['index.ts'] = commandStep(names, argv, fileName, follows ? { bands: 'as-input' } : looked.left);
      files['cases.json'] = json({
        ...(looked.isOnInputGrid ? {} : { grid: 'own' }),
        dependsOnPlace: true,
        cancel: 'outside',
        cases: [
          {
            name: 'recorded when the step was generated: replace it by your own expectation',
            inputs: { input: [tinyInput] },
            expect: { output: looked.expected },
          },
        ],
      });
    } else {
      files['index.ts'] = lang === 'python' ? pythonStep(names, bands) : typescriptStep(names, bands);
      if (lang === 'python') files[`${id}.py`] = pythonProgram(bands);
      files['cases.json'] = json(factorCases(bands));
    }
    await mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    await writeFile(appFile, await laidOut(changed, appFile));
    const test = await writeTest(appFile, id, names.kit);
    for (const path of [...Object.keys(files).map((name) => join(folder, name)), appFile, ...(test ? [test] : [])])
      console.log(`wrote    ${relative(process.cwd(), path)}`);
    return prove(definition.module, id, folder, confinement);
  },
});

/** Names of the bands in `--bands`. */
function bandNames(list: string | undefined, lang: string): readonly string[] {
  if (list === undefined) return defaultBands;
  if (lang === 'command')
    throw wrongArguments('--bands is for a step in TypeScript or Python: a program reads the whole file', usage);
  const names = list.split(',');
  const wrong = names.find((name) => !/^[a-z][a-zA-Z0-9_]{0,31}$/.test(name) || reserved.has(name));
  if (wrong !== undefined)
    throw wrongArguments(
      `--bands ${list}: ${wrong || 'an empty name'} cannot name an argument: use a letter from a-z, then letters, digits and _, and no word of the language`,
      usage,
    );
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw wrongArguments(`--bands ${list} names ${twice} twice`, usage);
  return names;
}

/** A confined program does not see them, and not every program says so. */
function refuseFilesOfTheMachine(argv: readonly string[]): void {
  const there = argv
    .slice(1)
    .find((argument) => !argument.startsWith('{') && argument.includes('/') && existsSync(argument));
  if (there !== undefined)
    throw new KitError(
      'bad_arguments',
      `the command names ${there}: a step's program sees no file of the machine. Lay the file beside the step's index.ts, add code: import.meta.url to its command, and write {code}/${basename(there)} in place of the path`,
    );
}

/** Formats code with oxfmt, if the project has oxfmt and an `.oxfmtrc.json`. */
async function laidOut(code: string, path: string): Promise<string> {
  try {
    const { format } = await import('oxfmt');
    let folder = dirname(path);
    while (folder !== dirname(folder) && !existsSync(join(folder, '.oxfmtrc.json'))) folder = dirname(folder);
    // Checked by oxfmt itself; a wrong one leaves the code as it is.
    const settings = JSON.parse(await readFile(join(folder, '.oxfmtrc.json'), 'utf8')) as FormatConfig;
    return (await format(path, code, settings)).code;
  } catch {
    return code;
  }
}

/** Output of a program for a tiny raster. */
interface Seen {
  readonly left: Left | null;
  /** Expected output of the first case. */
  readonly expected: object;
  readonly isOnInputGrid: boolean;
}

/** Runs the program once on a tiny raster, and looks at what it leaves. */
async function tryOut(
  names: StepNames,
  argv: readonly string[],
  fileName: string,
  tiny: typeof tinyInput,
  confinement: Confinement,
): Promise<Seen> {
  const scratch = scratchFolder('new-step');
  const folder = scratch.path;
  try {
    const kit = new URL('../index.ts', import.meta.url).href;
    const module = join(folder, 'app', 'app.mjs');
    await mkdir(dirname(module));
    const step = commandStep({ ...names, kit }, argv, fileName, null).replace("  cases: new URL('./cases.json', import.meta.url),\n", ''); // oxfmt-ignore
    await writeFile(join(folder, 'app', 'step.mjs'), step);
    await writeFile(module, "import step from './step.mjs';\nexport default { steps: [step] };\n");
    const inputs = join(folder, 'inputs');
    await runInChild({
      module: new URL('../testing/step-battery/write-job.ts', import.meta.url),
      input: { inputs: { input: [{ epsg: 32_633, geoTransform: [500_000, 30, 0, 5_400_000, 0, -30], ...tiny }] } },
      workFolder: inputs,
      confinement,
    });
    const input: StepJobInput = {
      definition: pathToFileURL(module).href,
      stepId: names.id,
      parameters: {},
      provenance: null,
      inputs: [{ name: 'input', kind: 'raster', synthetic: null, fileCount: 1 }],
    };
    const workFolder = join(folder, 'work');
    await runInChild({
      module: stepJobAddress,
      input,
      imports: [pathToFileURL(module)],
      files: [{ path: join(inputs, 'input', tinyInput.name), name: tinyInput.name }],
      workFolder,
      confinement,
    }).catch((error: unknown) => {
      throw new KitError('bad_arguments', `the program failed on a small test raster: ${messageOf(error)}`);
    });
    const extension = extname(fileName).toLowerCase();
    const kind = /^\.tiff?$/.test(extension) ? 'raster' : extensionsOf.vector.has(extension) ? 'vector' : null;
    if (kind === null) return { left: null, expected: {}, isOnInputGrid: false };
    const { output, dataTypes, layer } = await runInChild<Looked>({
      module: new URL('../testing/step-battery/look-job.ts', import.meta.url),
      input: { kind },
      files: [{ path: join(workFolder, fileName), name: fileName }],
      workFolder: join(folder, 'look'),
      confinement,
    });
    if (output.kind !== 'raster') {
      const properties = output.kind === 'vector' && layer ? output.properties : null;
      return { left: layer, expected: properties ? { properties } : {}, isOnInputGrid: false };
    }
    const [first] = output.bands;
    const values = first ? [...new Float64Array(Uint8Array.from(first.pixels).buffer)] : [];
    const isSame = output.width === tinyInput.width && output.height === tinyInput.height;
    return {
      left: { bands: output.bands.map(({ nodata }, i) => ({ dataType: dataTypes[i] ?? 'Float32', nodata })) },
      expected: {
        pixels: values.map((value) => (Number.isNaN(value) || value === first?.nodata ? null : value)),
        tolerance: 1e-6,
      },
      isOnInputGrid: isSame,
    };
  } finally {
    await scratch.remove();
  }
}

/** Beside the room's other tests, where there are any. */
async function writeTest(appFile: string, id: string, kit: string): Promise<string | null> {
  const root = join(dirname(appFile), '..', '..');
  const folder = join(root, 'test', 'my-app');
  if (!existsSync(folder)) return null;
  const path = join(folder, `${id}.test.ts`);
  const app = relative(folder, appFile).replaceAll('\\', '/');
  await writeFile(path, testFile(id, app, kit.startsWith('.') ? '../../src/testing/index.ts' : `${kit}/testing`));
  return path;
}

/** Runs the battery. What a program of somebody else's does not bear is written down in the cases, by name. */
async function prove(module: string, id: string, folder: string, confinement: Confinement): Promise<number> {
  // Anew: the app that is loaded has no such step.
  const definition = await loadApp(new URL(`${module}?with=${id}`));
  const step = definition.steps.find((known) => known.id === id);
  if (!step) throw new KitError('internal_error', `${module} does not list the step`);
  const checks = batteryOf({
    definition: { module, steps: definition.steps },
    stepId: id,
    cases: casesOf(step),
    confinement: () => Promise.resolve(confinement),
    largeSide: 2_048,
  });
  const failed: Record<string, string> = {};
  for (const { name, run } of checks) await run().catch((error: unknown) => (failed[name] = messageOf(error)));
  const path = join(folder, 'cases.json');
  const cases = ownJson<Record<string, unknown>>(await readFile(path, 'utf8'));
  const exempt = Object.fromEntries(
    Object.entries(failed)
      .filter(([name]) => !name.startsWith('case: '))
      .map(([name, why]) => [name, `failed when the step was generated: ${why}`]),
  );
  if (Object.keys(exempt).length > 0) await writeFile(path, json({ exempt, ...cases }));
  for (const [why, same] of Map.groupBy(Object.entries(failed), ([, reason]) => reason))
    console.log(`  fails: ${same.map(([name]) => name).join(', ')}: ${why}`);
  const own = Object.keys(failed).filter((name) => name.startsWith('case: '));
  console.log(
    own.length > 0
      ? `its own cases fail: ${own.join(', ')}`
      : `the step tests pass${Object.keys(exempt).length > 0 ? ', except for the checks that cases.json exempts: fix the step, or give the reason there' : ''}. Run it again: ${kitCommand} test-step ${id}`,
  );
  return own.length > 0 ? 1 : 0;
}
