// @module-tag all
/** Expressions mean what mathematics means by them; indices are their formulas; what does not fit is told before. */
import { join } from 'node:path';
import fc from 'fast-check';
import gdal from 'gdal-async';
import { describe, expect, test } from 'vitest';
import { checkParameters } from '../../src/app/processing/step-parameters.ts';
import { bandMath, parseExpression, spectralIndices } from '../../src/steps/index.ts';
import definition from '../support/index-steps.ts';
import { readGeoTiff } from '../support/read-geotiff.ts';
import { startStepHost } from '../support/step-host.ts';

function valueOf(text: string, bands: Readonly<Record<string, number>> = {}): number {
  const expression = parseExpression(text);
  const out = [NaN];
  expression.evaluate(
    expression.bands.map((name) => [bands[name]!]),
    out,
    1,
  );
  return out[0]!;
}

describe('an expression', () => {
  test.each([
    ['a + 2 * 3', 7],
    ['(a + 2) * 3', 9],
    ['a - 2 - 3', -4],
    ['8 / 4 / (a + 1)', 1],
    ['2 ^ 3 ^ (a + 1)', 512],
    ['-2 ^ (2 + a - 1)', -4],
    ['2 ^ -a', 0.5],
    ['--a', 1],
    ['sqrt(16 * a) + abs(-2) + max(a, 3) - min(a, 3)', 8],
    ['exp(log(5 * a)) + log10(1e3 * a)', 8],
    ['1.5e1 + .5 * a + 2.', 17.5],
    ['"B 1/2" * 2', 4],
    ['3 ** 2 ** (a + 1)', 81],
    ['-a ** 2', -1],
    ['a < 2', 1],
    ['a >= 2', 0],
    ['(a == 1) + (a != 1) * 10', 1],
    ['1 + a > 1 && a < 0 || a <= 1', 1],
    ['!(a > 3) - !a', 1],
    ['where(a > 0, 5, 7) + where(a > 1, 50, 70)', 75],
  ])('%s is %d, where a is 1 and "B 1/2" is 2', (text, value) => {
    expect(valueOf(text, { a: 1, 'B 1/2': 2 })).toBeCloseTo(value, 12);
  });

  test('a condition without a value has no result', () => {
    expect(valueOf('where(log(a - 2) > 0, 1, 2)', { a: 1 })).toBeNaN();
    expect(valueOf('!(a / a) || a == 0', { a: 0 })).toBeNaN();
  });

  test.each([
    ['', /needs a number, a band or \( at character 1/],
    ['a +', /at character 4, and has the end/],
    ['(a', /needs \) at character 3/],
    ['a b', /must end at character 3, and goes on with b/],
    ['a $ b', /character 3 that is no number, band or sign: \$ b/],
    ['1 + 2', /must name a band/],
    ['cosh(a)', /has no function cosh \(character 1\); known are sqrt/],
    ['constructor(a)', /has no function constructor/],
    ['a = 1', /character 3 that is no number, band or sign: = 1/],
    ['where(a, 1)', /gives where 2 values at character 1, and it takes 3/],
    ['max(a)', /gives max 1 values at character 1, and it takes 2/],
    ['"a', /no number, band or sign/],
    ['('.repeat(60) + 'a' + ')'.repeat(60), /more than 50 deep/],
    ['-'.repeat(60) + 'a', /more than 50 deep/],
    ['a'.repeat(1_001), /at most 1000 characters/],
  ])('%#: what is none is refused, with the place', (text, message) => {
    expect(() => parseExpression(text)).toThrow(message);
    expect(() => checkParameters(bandMath, { expression: text })).toThrow(/expression/);
  });

  test('whatever is written: it is an expression, or the reason is told', () => {
    const piece = fc.constantFrom(
      'a',
      'b',
      '1',
      '2.5',
      '+',
      '-',
      '*',
      '/',
      '^',
      '(',
      ')',
      ',',
      'sqrt',
      '"x"',
      ' ',
      '.',
      'e',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        try {
          expect(parseExpression(text).bands.length).toBeGreaterThan(0);
        } catch (error) {
          expect((error as Error).name === 'Error' && (error as Error).message).not.toMatch(/undefined|Maximum call/);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('means what JavaScript means by the same signs', () => {
    const number = fc.integer({ min: 1, max: 9 }).map(String);
    const { text } = fc.letrec<{ text: string }>((tie) => ({
      text: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('a', 'b'),
        number,
        fc.tuple(tie('text'), fc.constantFrom('+', '-', '*', '/'), tie('text')).map(([l, s, r]) => `(${l} ${s} ${r})`),
        fc.tuple(tie('text'), fc.constantFrom('+', '-', '*', '/'), tie('text')).map(([l, s, r]) => `${l} ${s} ${r}`),
      ),
    }));
    fc.assert(
      fc.property(text, (given) => {
        const whole = `a + ${given}`;
        // An oracle of a test may: the text is the test's own.
        // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-call
        const wanted = new Function('a', 'b', `return ${whole}`)(3, 7) as number;
        expect(valueOf(whole, { a: 3, b: 7 })).toBe(wanted);
      }),
      { numRuns: 500 },
    );
  });
});

const size = { width: 300, height: 200 };
const names = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'];
const stored = (band: number, i: number) => (i % 23 === band ? 0 : 7_000 + ((i * (band + 3) * 977) % 30_000));

/** A file for each band, by the names that Landsat 8 gives them. */
function writeScene(folder: string): void {
  for (const [k, number] of [2, 3, 4, 5, 6, 7].entries()) {
    const dataset = gdal.open(join(folder, `l8_B${number}.tif`), 'w', 'GTiff', size.width, size.height, 1, 'UInt16');
    dataset.geoTransform = [500_000, 30, 0, 5_000_000, 0, -30];
    dataset.srs = gdal.SpatialReference.fromEPSG(32_633);
    dataset.bands.get(1).noDataValue = 0;
    const values = Uint16Array.from({ length: size.width * size.height }, (_, i) => stored(k, i));
    dataset.bands.get(1).pixels.write(0, 0, size.width, size.height, values);
    dataset.close();
  }
}

test.each(Object.entries(spectralIndices))(
  '%s: by its formula, in reflectance; no data where a band has none',
  async (index, { formula }) => {
    const { run, inputDir } = await startStepHost({ definition, keepsChildren: true });
    writeScene(inputDir);
    const [factor, offset] = [0.0000275, -0.2];
    const { samples } = await readGeoTiff(
      (await run('spectral-index', { type: 'local', path: '.' }, { index, factor, offset })).path,
    );
    const { bands } = parseExpression(formula);
    // oxlint-disable-next-line typescript/no-implied-eval -- the formula as JavaScript reads it
    const oracle = new Function('sqrt', ...bands, `return ${formula.replaceAll('^', '**')}`) as (
      ...values: unknown[]
    ) => number;
    let [wrong, gone] = [0, 0];
    samples.forEach((value, i) => {
      const raw = bands.map((name) => stored(names.indexOf(name), i));
      const wanted = raw.includes(0) ? NaN : Math.fround(oracle(Math.sqrt, ...raw.map((one) => one * factor + offset)));
      if (Number.isNaN(wanted)) gone += 1;
      if (!Object.is(value, Number.isFinite(wanted) ? wanted : NaN)) wrong += 1;
    });
    expect(wrong).toBe(0);
    expect(gone).toBeGreaterThan(100);
  },
);

test('band math and the index make the pixels of the step that does it alone', async () => {
  const { run, inputDir } = await startStepHost({ definition, keepsChildren: true });
  writeScene(inputDir);
  const input = { type: 'local', path: '.' } as const;
  const read = async (stepId: string, parameters: Record<string, string | number>) =>
    (await readGeoTiff((await run(stepId, input, parameters)).path)).samples;
  const wanted = await read('ndvi', { bandA: 'nir', bandB: 'red' });
  expect(await read('spectral-index', { index: 'NDVI', factor: 1, offset: 0 })).toEqual(wanted);
  expect(await read('band-math', { expression: '(B5 - "B4") / (nir + RED)' })).toEqual(wanted);
});

test('bands that an index or an expression needs are checked before anybody is asked', async () => {
  const { host } = await startStepHost({ definition, keepsChildren: true });
  const input = { type: 'synthetic', size: 64 } as const;
  await expect(host.check('spectral-index', { index: 'NBR' }, input)).rejects.toMatchObject({
    details: [{ path: 'index', message: expect.stringContaining('"swir22"; the input has blue, green') as string }],
  });
  await expect(host.check('band-math', { expression: 'nir / thermal' }, input)).rejects.toMatchObject({
    details: [{ path: 'expression', message: expect.stringContaining('"thermal"') as string }],
  });
  expect(await host.check('spectral-index', { index: 'MNDWI' }, input)).toMatchObject({
    estimate: { seconds: 0.6 + 0.12 * 0.004096 },
  });
});
