/** Steps that misbehave, each in one way. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineStep, z, type BandDeclaration, type StepJob } from '../../src/steps/step.ts';

type Job = StepJob<Record<string, never>>;

function bad(
  id: string,
  run: (job: Job) => Promise<void>,
  bands: readonly BandDeclaration[] | 'as-input' = [{ description: 'b', dataType: 'Float32' }],
) {
  return defineStep({
    id,
    version: '1.0.0',
    title: id,
    description: id,
    parameters: z.object({}),
    input: { description: 'anything', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands, preview: { ramp: 'gray' } },
    run: async (job) => {
      writeFileSync(`${job.workFolder}/pid`, String(process.pid));
      await run(job);
    },
  });
}

async function writeElevation({ scene, raster, outputPath, share }: Job): Promise<void> {
  raster.writeCog(
    scene.onlyRaster(),
    outputPath,
    { compression: 'NONE', blockSize: 256, resampling: 'NEAREST' },
    share(0, 1),
  );
}

const steps = [
  bad('endless', async () => {
    for (;;);
  }),
  bad('cooperative', async ({ signal }) => sleep(60_000, undefined, { signal })),
  bad('greedy', async () => {
    const held: Buffer[] = [];
    for (;;) {
      held.push(Buffer.alloc(20 * 2 ** 20, 1));
      await sleep(20);
    }
  }),
  bad('wordy', async ({ workFolder }) => {
    for (let i = 0; ; i++) {
      writeFileSync(`${workFolder}/${i}`, Buffer.alloc(10 * 2 ** 20, 1));
      await sleep(20);
    }
  }),
  bad('crashing', async () => {
    process.kill(process.pid, 'SIGSEGV');
    await sleep(10_000);
  }),
  bad('exiting', async () => process.exit(0)),
  bad('misusing', async ({ scene }) => void Object.assign(scene.onlyRaster(), { description: 'a new name' })),
  bad('opening-nothing', async ({ gdal }) => void (await gdal.openAsync('/does/not/exist.tif'))),
  bad('needing-a-package', async () => void (await import(['a-package', 'that-is-not-there'].join('-')))),
  bad('not-awaiting', async ({ signal }) => {
    void Promise.reject(new Error('the planted rejection'));
    await sleep(60_000, undefined, { signal });
  }),
  bad('as-its-first-pixel-says', async (job) => {
    const value = job.scene.bands[0]!.band.pixels.get(0, 0);
    if (value === 2) for (;;);
    if (value === 3) process.kill(process.pid, 'SIGKILL');
    await writeElevation(job);
  }),
  bad('reading-by-itself', async ({ scene: { bands } }) => {
    const { x: width, y: height } = bands[0]!.dataset.rasterSize;
    await bands[0]!.band.pixels.readAsync(0, 0, width, height);
    throw new Error('the input was to be damaged');
  }),
  bad('throwing', async () => {
    throw new Error('a defect of the step');
  }),
  bad('silent', async () => {}),
  bad(
    'talkative',
    async (job) => {
      console.log('one line\u001b[31m in red\u001b[0m and a bell\u0007');
      console.log('x'.repeat(5_000));
      for (let i = 0; i < 300; i++) console.log(`line ${i}`);
      await writeElevation(job);
    },
    'as-input',
  ),
  bad('wrong-bands', writeElevation, [
    { description: 'a', dataType: 'Float32' },
    { description: 'b', dataType: 'Float32' },
  ]),
  bad('wrong-type', writeElevation, [{ description: 'a', dataType: 'Byte', nodata: -9999 }]),
  bad('wrong-nodata', writeElevation, [{ description: 'a', dataType: 'Float32', nodata: 0 }]),
  bad(
    'stray-nan',
    async ({ gdal, outputPath }) => {
      const output = gdal.drivers.get('GTiff').create(outputPath, 64, 64, 1, 'Float32');
      const band = output.bands.get(1);
      band.noDataValue = -9999;
      band.pixels.write(0, 0, 64, 64, new Float32Array(4_096).fill(NaN, 4_095));
      output.close();
    },
    [{ description: 'a', dataType: 'Float32', nodata: -9999 }],
  ),
  bad('unclosed', async ({ gdal, outputPath }) => {
    // Keeps it from being collected before the end.
    Object.assign(globalThis, { kept: gdal.drivers.get('GTiff').create(outputPath, 64, 64, 1, 'Float32') });
  }),
  bad('curious', async () => {
    throw new Error(JSON.stringify(process.env));
  }),
];

export default defineApp({
  module: import.meta.url,
  id: 'bad-steps',
  name: 'bad-steps',
  description: 'Steps of a test.',
  steps,
});
