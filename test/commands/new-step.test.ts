// @module-tag all
/** A step of one's own, from nothing or from a program: written, registered, proven. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { argvOf } from '../../src/commands/new-step/argv.ts';
import { registered } from '../../src/commands/new-step/register.ts';
import { mutant } from '../support/mutant.ts';
import { confined, needing } from '../support/needs.ts';

const run = promisify(execFile);
const timeout = 900_000;
const isConfined = await confined();

const newStep = (folder: string, ...args: string[]) =>
  run(process.execPath, ['--import', './scripts/preload.mjs', 'src/commands/new-step.ts', ...args], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', MY_APP: '' },
    timeout,
  });

test(
  'in Python, and by a program: what it leaves is declared, and what it does not bear is told',
  { timeout, ...needing(isConfined) },
  async () => {
    const folder = await mutant([], ['test/my-app']);
    const python = await newStep(folder, 'doubled', '--lang', 'python', '--bands', 'green,swir16');
    expect(python.stdout).toMatch(/the step tests pass\. /);
    expect(await readFile(join(folder, 'src/my-app/steps/doubled/index.ts'), 'utf8')).toContain(
      "bands: { green: band({ default: 'green' }), swir16: band({ default: 'swir16' }) },",
    );
    const program = await newStep(folder, 'roughness', '--from', "gdaldem roughness <input> '<output>' -of COG");
    expect(program.stdout).toMatch(/the step tests pass/);
    const declared = await readFile(join(folder, 'src/my-app/steps/roughness/index.ts'), 'utf8');
    expect(declared).toContain("bands: [{ description: 'band 1', dataType: 'Float32', nodata: -9999 }]");
    expect(declared).toContain("argv: ['gdaldem', 'roughness', '{input}', '{output}', '-of', 'COG']");
    const half = await newStep(folder, 'half', '--from', 'gdal_translate -outsize 50% 50% <input> <output>');
    expect(half.stdout).toMatch(/the step tests pass/);
    expect(await readFile(join(folder, 'src/my-app/steps/half/index.ts'), 'utf8')).toContain("bands: 'as-input'");
    expect(JSON.parse(await readFile(join(folder, 'src/my-app/steps/half/cases.json'), 'utf8'))).toMatchObject({
      grid: 'own',
    });
    const polygons = 'gdal_contour -p -amin low -amax high -i 20 <input> <output>';
    const heights = await newStep(folder, 'height-bands', '--from', polygons, '--file', 'height-bands.gpkg');
    expect(heights.stdout).toMatch(/the step tests pass/);
    const features = await readFile(join(folder, 'src/my-app/steps/height-bands/index.ts'), 'utf8');
    expect(features).toContain("geometry: 'MultiPolygon'");
    expect(features).toMatch(/fields: \{ ID: 'integer', low: 'real', high: 'real' \}/);
    // Heights go from 100 to 154.
    expect(await readFile(join(folder, 'src/my-app/steps/height-bands/cases.json'), 'utf8')).toMatch(
      /"high":120,.*"low":120,"high":140,.*"low":140,"high":160,/,
    );
    expect(await readFile(join(folder, 'src/my-app/app.ts'), 'utf8')).toMatch(
      /doubled,\s*roughness,\s*half,\s*heightBands,?\s*\]/,
    );
    for (const [bands, message] of [
      ['green,in', 'in cannot name an argument'],
      ['green,', 'an empty name cannot name an argument'],
      ['green,green', 'names green twice'],
    ] as const)
      await expect(newStep(folder, 'nothing', '--bands', bands)).rejects.toMatchObject({
        stderr: expect.stringContaining(message) as string,
      });
    await expect(newStep(folder, 'half')).rejects.toMatchObject({
      stderr: expect.stringContaining('your app has a step half') as string,
    });
    await expect(newStep(folder, 'nothing', '--from', 'gdaldem nonsense <input> <output>')).rejects.toMatchObject({
      stderr: expect.stringContaining('the program failed on a small test raster: gdaldem ended with code') as string,
    });
    expect(await readFile(join(folder, 'src/my-app/app.ts'), 'utf8')).not.toContain('nothing');
  },
);

describe('a command', () => {
  test.each([
    ['gdaldem slope <input> <output>', ['gdaldem', 'slope', '{input}', '{output}']],
    [
      `gdal_calc.py -A <input> --calc="A*2 + 1" --out'file'=<output>`,
      ['gdal_calc.py', '-A', '{input}', '--calc=A*2 + 1', '--outfile={output}'],
    ],
    [`a -x '1 2' "<input>" out=<output>`, ['a', '-x', '1 2', '{input}', 'out={output}']],
  ])('%s', (command, argv) => {
    expect(argvOf(command, '')).toEqual(argv);
  });
  test.each([
    ['', /needs a program/],
    ['gdaldem slope <input>', /must name <output>/],
    ['a <input> | b > <output>', /\| is for a shell, and none reads the command/],
    ['a <input> <output> <scale>', /<scale> is neither <input> nor <output>/],
    ['a "<input> <output>', /a quotation mark is not closed/],
  ])('%s', (command, message) => {
    expect(() => argvOf(command, '')).toThrow(message);
  });
});

test('an app lists one step more; a list that is made elsewhere is left alone', () => {
  const app =
    "import { cog, defineApp } from 'marketplace-app-kit';\n\nexport default defineApp({ steps: [cog,\n  ] });\n";
  expect(registered(app, 'mine', './steps/mine/index.ts')).toBe(
    "import { cog, defineApp } from 'marketplace-app-kit';\nimport mine from './steps/mine/index.ts';\n\nexport default defineApp({ steps: [cog, mine,\n  ] });\n",
  );
  const steps = (list: string) => app.replace('[cog,\n  ]', list);
  const listed = (list: string) => registered(steps(list), 'mine', './x')?.split('steps: ')[1];
  expect(listed('[cog]')).toBe('[cog, mine] });\n');
  expect(listed('[]')).toBe('[mine] });\n');
  expect(listed('[\n  cog, // the example\n]')).toBe('[\n  cog, mine, // the example\n] });\n');
  expect(listed('[\n  cog // the example]\n]')).toBe('[\n  cog, mine // the example]\n] });\n');
  const commented = registered(`// steps: [a, b] are listed below\n${app}`, 'mine', './x');
  expect(commented).toMatch(/^\/\/ steps: \[a, b\] are listed below\n[^]*steps: \[cog, mine,/);
  // Code that would not parse is not written.
  expect(registered(steps('[cog] as'), 'mine', './x')).toBeNull();
  expect(registered(app.replace('[cog,\n  ]', 'all'), 'mine', './x')).toBeNull();
  expect(registered(app.replace('[cog,', '[cog, ...[hillshade],'), 'mine', './x')).toBeNull();
});
