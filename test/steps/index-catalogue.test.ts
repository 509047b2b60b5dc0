/** The indices of a catalogue in the app folder, beside the formulas as JavaScript reads them. */
import { writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkParameters, parameterSchema } from '../../src/app/processing/step-parameters.ts';
import { parseExpression, spectralIndexFrom } from '../../src/steps/index.ts';
import { readIndexCatalogue } from '../../src/steps/spectral-index/read-catalogue.ts';
import { indexCatalogueFolder, testFolder } from '../support/folders.ts';
import { indexCatalogue, needing } from '../support/needs.ts';

const names = ['spectral-indices-dict.json', 'constants.json', 'bands.json'];

const index = (formula: string, more: object = {}) => ({
  long_name: 'Name',
  reference: 'https://doi.org/1',
  bands: [],
  formula,
  ...more,
});

async function catalogue(indices: Record<string, object>, left: readonly string[] = names): Promise<URL> {
  const folder = await testFolder();
  const contents = {
    'spectral-indices-dict.json': { SpectralIndices: indices },
    'constants.json': {
      L: { description: 'Canopy background', default: 0.5, short_name: 'L' },
      PAR: { description: 'Radiation', default: null, short_name: 'PAR' },
    },
    'bands.json': { N: { common_name: 'nir' }, R: { common_name: 'red' } },
  };
  for (const [name, content] of Object.entries(contents))
    if (left.includes(name)) await writeFile(join(folder, name), JSON.stringify(content));
  return pathToFileURL(`${folder}/`);
}

describe('the files of a catalogue', () => {
  test('name bands by their common names; what is more than arithmetic is left out, and counted', async () => {
    const read = readIndexCatalogue(
      await catalogue({
        A: index('(N - R) / (N + R) ** 2.0'),
        B: index('1e3 * N - L * R'),
        RADAR: index('VV - VH'),
        KERNEL: index('kNN - kNR'),
        BROKEN: index('N +'),
      }),
    );
    expect(read?.indices['A']?.formula).toBe('(nir - red) / (nir + red) ** 2.0');
    expect(read?.indices['B']?.formula).toBe('1e3 * nir - L * red');
    expect(Object.keys(read!.indices)).toEqual(['A', 'B', 'RADAR']);
    expect(read?.leftOut).toBe(2);
  });

  test('make a step: choices with their titles and bands, constants as parameters', async () => {
    const step = spectralIndexFrom(await catalogue({ A: index('N / R'), B: index('L * R + PAR') }));
    const { properties, required } = parameterSchema(step);
    expect(properties['index']?.enum).toEqual(['A', 'B']);
    expect(properties['index']?.choices).toEqual({
      A: { title: 'Name (https://doi.org/1)', bands: ['nir', 'red'] },
      B: { title: 'Name (https://doi.org/1); constants L, PAR', bands: ['red'] },
    });
    expect(properties['L']?.description).toBe('Canopy background. Default: 0.5.');
    expect(properties['PAR']?.description).toBe('Radiation. An index with this constant needs it.');
    expect(required).toEqual([]);
  });

  test('a constant without a default must be given, before the user is asked', async () => {
    const step = spectralIndexFrom(await catalogue({ A: index('N / R'), B: index('L * R + PAR') }));
    const needs = (more: object) => step.needs!({ ...checkParameters(step, more) } as never);
    expect(needs({ index: 'A' })).toEqual({ index: ['nir', 'red'] });
    expect(() => needs({ index: 'B' })).toThrow('B needs the constant PAR (Radiation)');
    expect(needs({ index: 'B', PAR: 3 })).toEqual({ index: ['red'] });
  });

  test('are the kit’s own indices where there are none, and an error where one is missing or wrong', async () => {
    expect(parameterSchema(spectralIndexFrom(await catalogue({}, []))).properties['index']?.enum).toContain('MSAVI');
    const alone = await catalogue({ A: index('N') }, ['spectral-indices-dict.json']);
    expect(() => spectralIndexFrom(alone)).toThrow('lacks constants.json and bands.json beside the others');
    const odd = await catalogue({ A: { formula: 3 } });
    const taken = await catalogue({ A: index('N') });
    await writeFile(new URL('constants.json', taken), '{"offset": {"description": "", "default": 1}}');
    expect(() => spectralIndexFrom(taken)).toThrow('the step has a parameter offset');
    const none = await catalogue({ KERNEL: index('kNN') });
    expect(() => spectralIndexFrom(none)).toThrow('has no formula that the expression language can express');
    expect(() => spectralIndexFrom(odd)).toThrow(
      'spectral-indices-dict.json cannot be used: SpectralIndices.A.long_name',
    );
  });
});

test(
  'every formula of the public catalogue comes to what JavaScript makes of it',
  needing(indexCatalogue),
  async () => {
    const read = readIndexCatalogue(pathToFileURL(`${indexCatalogueFolder}/`))!;
    const contentOf = (name: string): unknown => JSON.parse(readFileSync(join(indexCatalogueFolder, name), 'utf8'));
    const raw = contentOf('spectral-indices-dict.json') as { SpectralIndices: Record<string, { formula: string }> };
    const all = contentOf('bands.json') as Record<string, { common_name: string }>;
    // Kernels, and nothing else.
    expect(read.leftOut).toBe(
      Object.values(raw.SpectralIndices).filter(({ formula }) => /\bk[A-Z]{2}\b/.test(formula)).length,
    );
    expect(Object.keys(read.indices).length).toBeGreaterThan(270);
    const constants = Object.fromEntries(Object.keys(read.constants).map((name, i) => [name, 0.3 + 0.17 * i]));
    const samples = 50;
    for (const [id, { formula }] of Object.entries(read.indices)) {
      const original = raw.SpectralIndices[id]!.formula;
      const parsed = parseExpression(formula, constants);
      const words = [...new Set(original.match(/(?<![\w.])[A-Za-z]\w*/g))];
      // oxlint-disable-next-line typescript/no-implied-eval -- the formula as JavaScript reads it
      const oracle = new Function(...words, `return ${original}`) as (...values: number[]) => number;
      const values = new Map(
        [...Object.keys(all), 'VV', 'VH', 'HV', 'HH'].map((name, k) => [
          name,
          Float64Array.from({ length: samples }, (_, i) => 0.02 + ((i * 37 + k * 53) % 97) / 100),
        ]),
      );
      const ofCommonName = (name: string) =>
        values.get(Object.keys(all).find((short) => all[short]!.common_name === name) ?? name)!;
      const out = new Float64Array(samples);
      parsed.evaluate(parsed.bands.map(ofCommonName), out, samples);
      out.forEach((value, i) => {
        const wanted = oracle(...words.map((word) => constants[word] ?? values.get(word)![i]!));
        if (Number.isFinite(wanted)) expect(value, id).toBeCloseTo(wanted, 9);
        else expect(Number.isFinite(value), id).toBe(false);
      });
    }
  },
);
