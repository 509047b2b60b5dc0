/** Runs every step that has an example on real data, and draws what comes out. */
import { cp, link, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import gdal from 'gdal-async';
import sharp from 'sharp';
import { createStepHost } from '../../src/app/processing/step-host.ts';
import { confine } from '../../src/commands/confine.ts';
import { mainInput } from '../../src/steps/step.ts';
import allSteps from '../../test/support/all-steps.ts';
import { examples, reducedScene } from './examples.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const width = 480;
const ground = '#dfe7ea';

export async function drawPictures(target: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'marketplace-app-kit-reference-'));
  const made = join(folder, 'made');
  await mkdir(join(made, reducedScene), { recursive: true });
  reduceColours(join(root, 'src/sandbox/scenes/olinda-landsat7.tif'), join(made, reducedScene));
  const confinement = await confine({ mode: 'auto', readable: [] }, []);
  const nowhere = () => Promise.reject(new Error('examples are files'));
  try {
    for (const [id, { inputs, parameters = {} }] of Object.entries(examples)) {
      const inputDir = join(folder, `inputs-${id}`);
      await mkdir(inputDir);
      for (const path of Object.values(inputs))
        await cp(path.includes('/') ? join(root, path) : join(made, path), join(inputDir, basename(path)), {
          recursive: true,
        });
      const host = createStepHost({
        definition: allSteps,
        inputDir,
        confinement,
        concurrency: 1,
        platformInput: { check: nowhere, fetch: nowhere },
      });
      const sources = Object.fromEntries(
        Object.entries(inputs).map(([name, path]) => [name, { type: 'local', path: basename(path) } as const]),
      );
      const [first] = Object.values(sources);
      const step = host.find(id);
      const input = Object.keys(sources).length === 1 && first ? first : ({ type: 'named', inputs: sources } as const);
      const checked = await host.check(id, parameters, input);
      const { outputs, result } = await host.run(
        { owner: 'reference', stepId: id, stepVersion: step.version, parameters: checked.parameters, input, workFolder: join(folder, id) }, // oxfmt-ignore
        { signal: new AbortController().signal, onProgress: () => {} },
      );
      for (const { path } of outputs) await link(path, join(made, basename(path))).catch(() => {});
      const picture = result ? Buffer.from(result.picture) : Buffer.from(drawingOf(outputs[0]!.path));
      const path = join(target, `${id}.png`);
      await sharp(picture)
        .resize({ width, height: width, fit: 'inside', withoutEnlargement: false })
        .flatten({ background: ground })
        .png({ palette: true, colours: 96, compressionLevel: 9 })
        .toFile(path);
      console.log(`${basename(path)}, of ${inputs[mainInput(step)?.[0] ?? ''] ?? 'features'}`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** After Wald: what a sharpened scene ought to look like is known where its colours were made coarser first. */
function reduceColours(path: string, folder: string): void {
  const scene = gdal.open(path);
  const colours = ['-b', '1', '-b', '2', '-b', '3'];
  gdal.translate(join(folder, 'colours.tif'), scene, [...colours, '-outsize', '25%', '25%', '-r', 'average']).close();
  const { x: width, y: height } = scene.rasterSize;
  const pan = gdal.drivers.get('GTiff').create(join(folder, 'pan.tif'), width, height, 1, 'Byte');
  pan.geoTransform = scene.geoTransform;
  pan.srs = scene.srs;
  const [blue, green, red] = [1, 2, 3].map((band) => scene.bands.get(band).pixels.read(0, 0, width, height));
  const mean = Uint8Array.from(blue!, (value, i) => Math.round((value + green![i]! + red![i]!) / 3));
  pan.bands.get(1).pixels.write(0, 0, width, height, mean);
  pan.close();
  scene.close();
}

/** Features as SVG: lines in one colour, areas in shades of what they hold. */
function drawingOf(path: string): string {
  const dataset = gdal.open(path, 'r', extname(path) === '.gpkg' ? 'GPKG' : 'GeoJSON');
  const layer = dataset.layers.get(0);
  const { minX, minY, maxX, maxY } = layer.getExtent();
  const scale = width / (maxX - minX);
  const shapes = layer.features.map((feature) => {
    const geometry = JSON.parse(feature.getGeometry()!.toJSON()) as { type: string; coordinates: unknown };
    const values = feature.fields.toObject() as Record<string, number | null>;
    return { lines: linesOf(geometry.coordinates), isArea: geometry.type.endsWith('Polygon'), value: values['mean'] ?? values['value'] ?? values['elevation'] ?? 0 }; // oxfmt-ignore
  });
  dataset.close();
  const all = shapes.map(({ value }) => value);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const paths = shapes.map(({ lines, isArea, value }) => {
    const d = lines
      .map(
        (line) =>
          `M${line.map(([x, y]) => `${((x - minX) * scale).toFixed(1)},${((maxY - y) * scale).toFixed(1)}`).join('L')}${isArea ? 'Z' : ''}`,
      )
      .join('');
    const light = 25 + 60 * ((value - low) / (high - low || 1));
    const color = `hsl(160, 45%, ${light.toFixed(0)}%)`;
    return `<path d="${d}" fill="${isArea ? color : 'none'}" fill-rule="evenodd" stroke="${isArea ? '#ffffff' : color}" stroke-width="${isArea ? 0.6 : 1}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.round((maxY - minY) * scale)}">${paths.join('')}</svg>`;
}

type Line = readonly (readonly [number, number])[];

function linesOf(coordinates: unknown): Line[] {
  const list = coordinates as unknown[];
  const first = list[0] as unknown[];
  return typeof first[0] === 'number' ? [list as unknown as Line] : list.flatMap((one) => linesOf(one));
}
