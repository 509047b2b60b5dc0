/**
 * `npm run lab -- lab/models/train.ts [--data FOLDER]`: trains the sandbox's models again, byte for byte. It fits them to an
 * index on the western half of a Landsat 8 scene, and tests them on the eastern half.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import gdal from 'gdal-async';
import { classify, graphOf, normalisationOf, train, type Samples } from './network.ts';
import { writeOnnx } from './onnx.ts';
import { seeded } from './seeded.ts';

const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: '../shared/data/landsat8' },
    out: { type: 'string', default: 'src/sandbox/models' },
  },
});
if (!existsSync(options.data)) {
  console.error(
    `${options.data} does not exist: --data FOLDER names a Landsat 8 scene, single bands ..._B3.tif to ..._B6.tif with its ..._MTL.txt`,
  );
  process.exit(1);
}

/** Names that a model finds its bands by, and Landsat 8's numbers. */
const bandNumbers = { green: 3, red: 4, nir: 5, swir16: 6 } as const;
type BandName = keyof typeof bandNumbers;
type Reflectance = Readonly<Record<BandName, number>>;

const scene = await readScene(resolve(options.data));

const difference = (a: number, b: number) => (a - b) / (a + b);

interface Model {
  readonly id: string;
  readonly name: string;
  readonly type: 'SEGMENTATION' | 'CLASSIFICATION';
  readonly labels: readonly string[];
  readonly bands: readonly BandName[];
  /** The index that it learns, and the class that it makes of a pixel. */
  readonly index: string;
  readonly classOf: (r: Reflectance) => number;
}

const isWater = (r: Reflectance) => (difference(r.green, r.swir16) > 0 ? 1 : 0);
const water = {
  labels: ['land', 'water'],
  bands: ['green', 'red', 'nir', 'swir16'],
  index: 'MNDWI = (green - swir16) / (green + swir16), water above 0',
  classOf: isWater,
} as const;

const models: readonly Model[] = [
  { id: 'water', name: 'Water', type: 'SEGMENTATION', ...water },
  {
    id: 'vegetation',
    name: 'Vegetation density',
    type: 'CLASSIFICATION',
    labels: ['none', 'sparse', 'dense'],
    bands: ['green', 'red', 'nir', 'swir16'],
    index: 'NDVI = (nir - red) / (nir + red), sparse from 0.25, dense from 0.55',
    classOf(r) {
      const ndvi = difference(r.nir, r.red);
      return ndvi >= 0.55 ? 2 : ndvi >= 0.25 ? 1 : 0;
    },
  },
];

/** The factor from top-of-atmosphere reflectance to the numbers that the models learn from. */
const numbersPerReflectance = Math.round(scene.numbersPerReflectance);
const values = [
  { name: 'reflectance', from: -0.5, to: 2, factor: numbersPerReflectance, offset: 5_000 },
  // The brightest byte counts as a reflectance of 0.8.
  { name: 'bytes', from: 0, to: 255, factor: Math.round((numbersPerReflectance * 0.8) / 255), offset: 5_000 },
  { name: 'Landsat 8 digital numbers', from: 4_000, to: 65_535 },
  { name: 'reflectance times 10,000', from: -2_000, to: 16_000, factor: numbersPerReflectance / 1e4, offset: 5_000 },
];

console.log('| model | learned from | trained on | held out | accuracy | per class (recall) |');
console.log('|---|---|---:|---:|---:|---|');
for (const model of models) {
  const [west, east] = [samplesOf(model, 0, 0.5), samplesOf(model, 0.5, 1)];
  const normalisation = normalisationOf(west);
  const network = train(west, normalisation, 8, model.labels.length, seeded(11));
  const found = classify(network, east, normalisation);
  const rightOf = (classes: Uint8Array, wanted: number | null) => {
    const rows = [...classes.keys()].filter((i) => wanted === null || classes[i] === wanted);
    return rows.filter((i) => found[i] === classes[i]).length / rows.length;
  };
  const folder = join(options.out, model.id);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'model.onnx'), writeOnnx(graphOf(model.id, network)));
  const description = {
    name: model.name,
    version: '1.1.0',
    type: model.type,
    labels: model.labels,
    bands: model.bands,
    normalisation,
    values,
    tileSize: 512,
    overlap: 0,
    about: `Learned ${model.index}, on Landsat 8 digital numbers; made by lab/models/train.ts.`,
  };
  await writeFile(join(folder, 'model.json'), `${JSON.stringify(description, null, 2)}\n`);
  const perClass = model.labels
    .map((label, i) => `${label} ${(100 * rightOf(east.classes, i)).toFixed(2)} %`)
    .join(', ');
  console.log(
    `| ${model.id} | ${model.index} | ${west.classes.length} | ${east.classes.length} | ${(100 * rightOf(east.classes, null)).toFixed(2)} % | ${perClass} |`,
  );
}

/** Digital numbers of the pixels between two shares of the width, and their class by the index. */
function samplesOf(model: Model, from: number, to: number): Samples {
  const rows: number[] = [];
  const classes: number[] = [];
  for (let y = 0; y < scene.height; y++) {
    for (let x = Math.round(scene.width * from); x < Math.round(scene.width * to); x++) {
      const at = y * scene.width + x;
      const numbers = model.bands.map((name) => scene.bands[name][at] ?? 0);
      if (numbers.some((value) => value === 0)) continue;
      rows.push(...numbers);
      classes.push(model.classOf(scene.reflectanceAt(at)));
    }
  }
  return { inputs: model.bands.length, rows: Float32Array.from(rows), classes: Uint8Array.from(classes) };
}

async function readScene(folder: string) {
  const names = await readdir(folder);
  const metadata = await readFile(join(folder, names.find((name) => name.endsWith('_MTL.txt')) ?? ''), 'utf8');
  const number = (name: string) => Number(new RegExp(`\\b${name} = ([-+.\\dE]+)`).exec(metadata)?.[1]);
  const sun = Math.sin((number('SUN_ELEVATION') * Math.PI) / 180);
  let [width, height] = [0, 0];
  const bands = Object.fromEntries(
    Object.entries(bandNumbers).map(([name, n]) => {
      const dataset = gdal.drivers
        .get('GTiff')
        .open(join(folder, names.find((one) => one.endsWith(`_B${n}.tif`)) ?? ''));
      ({ x: width, y: height } = dataset.rasterSize);
      const pixels = new Float32Array(width * height);
      dataset.bands.get(1).pixels.read(0, 0, width, height, pixels);
      dataset.close();
      return [name, pixels];
    }),
  ) as Record<BandName, Float32Array>;
  const scale = Object.entries(bandNumbers).map(
    ([name, n]) =>
      [name, number(`REFLECTANCE_MULT_BAND_${n}`) / sun, number(`REFLECTANCE_ADD_BAND_${n}`) / sun] as const,
  );
  /** Top of atmosphere. */
  const reflectanceAt = (at: number) =>
    Object.fromEntries(
      scale.map(([name, factor, offset]) => [name, (bands[name as BandName][at] ?? 0) * factor + offset]),
    ) as Reflectance;
  return { width, height, bands, reflectanceAt, numbersPerReflectance: 1 / scale[0]![1] };
}
