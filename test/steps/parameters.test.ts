/** Parameters beyond scalars: places, and files of the app's own. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkParameters, parameterSchema, valueInWords } from '../../src/app/processing/step-parameters.ts';
import { area, defineStep, ownFile, z, type Area } from '../../src/steps/index.ts';
import { squareKilometresOf } from '../../src/steps/area.ts';
import { testFolder } from '../support/folders.ts';

const words = { title: 'x', description: 'x' };
const stepWith = (shape: z.ZodRawShape) =>
  defineStep({
    ...{ id: 'mine', version: '1.0.0', title: 'x', description: 'x' },
    parameters: z.object(shape),
    input: { description: 'x', synthetic: 'elevation' },
    run: async () => {},
  });

const box = (west: number, south: number, east: number, north: number) => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
const polygon = (...rings: number[][][]) => ({ type: 'Polygon', coordinates: rings });
const square = polygon(box(10, 40, 10.1, 40.1));

describe('an area', () => {
  const step = stepWith({ area: area({ ...words, maxSquareKilometres: 200, maxCorners: 8 }) });
  const read = (value: unknown) => checkParameters(step, { area: value })['area'];

  test.each([
    ['GeoJSON', square],
    ['its text', JSON.stringify(square)],
    ['a feature', { type: 'Feature', properties: { name: 'x' }, geometry: square }],
    ['a collection of one', { type: 'FeatureCollection', features: [{ type: 'Feature', geometry: square }] }],
    ['a ring that is not closed', polygon(box(10, 40, 10.1, 40.1).slice(0, 4))],
    ['heights', polygon(box(10, 40, 10.1, 40.1).map((place) => [...place, 12]))],
  ])('%s reads as a polygon with closed rings', (_what, value) => expect(read(value)).toEqual(square));

  test('what has been read reads as itself', () => expect(read(read(square))).toEqual(square));

  test.each([
    ['nothing', undefined, /area: is required/],
    ['no JSON', 'Olinda', /must be GeoJSON of one polygon or multipolygon/],
    ['a point', { type: 'Point', coordinates: [1, 2] }, /must be GeoJSON of one polygon/],
    ['metres', polygon(box(500_000, 5_000_000, 500_100, 5_000_100)), /in longitude and latitude/],
    ['two features', { type: 'FeatureCollection', features: [0, 1].map(() => ({ type: 'Feature', geometry: square })) }, /of one polygon/], // oxfmt-ignore
    ['a line', polygon([[10, 40], [11, 41], [10, 40]]), /must enclose something/], // oxfmt-ignore
    ['too large', polygon(box(10, 40, 11, 41)), /must be at most 200 square kilometres, not 9400$/],
    ['too many corners', { type: 'MultiPolygon', coordinates: [1, 2, 3].map((x) => [box(x, 40, x + 0.01, 40.01)]) }, /at most 8 corners, not 12/], // oxfmt-ignore
  ])('%s is refused, in words', (_what, value, message) => expect(() => read(value)).toThrow(message));

  test('its size is that on the Earth, without its holes', () => {
    // A degree at 40° north: 111.0 by 85.4 km.
    expect(squareKilometresOf(polygon(box(10, 40, 11, 41)) as unknown as Area)).toBeCloseTo(9_401, -1);
    const whole = squareKilometresOf(square as unknown as Area);
    const holed = polygon(box(10, 40, 10.1, 40.1), box(10, 40, 10.05, 40.1));
    expect(squareKilometresOf(holed as unknown as Area)).toBeCloseTo(whole / 2, 6);
  });

  test('people read its size and place; programs a schema that says that it must be there', () => {
    expect(valueInWords(square as unknown as Area)).toBe(
      'an area of 94.6 square kilometres, from 10° E 40° N to 10.1° E 40.1° N',
    );
    const schema = parameterSchema(step);
    expect(schema.properties['area']).toMatchObject({ type: 'object', kind: 'area', title: 'x' });
    expect(schema.required).toEqual(['area']);
    expect(checkParameters(stepWith({ area: area(words).optional() }), {})).toEqual({});
  });
});

describe("a file of the app's own", () => {
  test('is one of those in the folder', async () => {
    const folder = await testFolder();
    for (const name of ['b.json', 'a.json', '.hidden']) await writeFile(join(folder, name), '{}');
    const step = stepWith({ table: ownFile({ ...words, folder: pathToFileURL(`${folder}/`), default: 'b.json' }) });
    expect(checkParameters(step, {})).toEqual({ table: 'b.json' });
    expect(parameterSchema(step).properties['table']?.enum).toEqual(['a.json', 'b.json']);
    for (const name of ['c.json', '../a.json', '.hidden'])
      expect(() => checkParameters(step, { table: name })).toThrow(/table: must be one of a\.json, b\.json/);
  });
  test('a folder without a file stops the start', async () => {
    const folder = pathToFileURL(`${await testFolder()}/`);
    expect(() => ownFile({ ...words, folder })).toThrow(/holds no file to choose from/);
  });
});
