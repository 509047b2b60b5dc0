/** GDAL throws plain errors for what a user can mend, and a step for what its maker must. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { classifyStepError } from '../../src/app/processing/classify-step-error.ts';
import { Defect } from '../../src/child/in-child.ts';
import { testFolder } from '../support/folders.ts';

const thrownBy = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('it was to throw');
};

test("GDAL's own errors stay as they are, whichever way they come", async () => {
  const path = join(await testFolder(), 'damaged.tif');
  const made = gdal.open(path, 'w', 'GTiff', 256, 256, 1, 'Byte', ['COMPRESS=DEFLATE', 'TILED=YES']);
  made.bands.get(1).pixels.write(
    0,
    0,
    256,
    256,
    Uint8Array.from({ length: 65_536 }, (_, i) => (Math.imul(i, 2_654_435_761) >>> 13) & 255),
  );
  made.close();
  const bytes = await readFile(path);
  await writeFile(path, bytes.fill(0, 600, bytes.length - 600));
  const band = gdal.open(path).bands.get(1);
  for (const work of [
    () => gdal.open('/nothing.tif'),
    () => band.pixels.read(0, 0, 256, 256),
    () => band.pixels.readAsync(0, 0, 256, 256),
  ]) {
    const error = await thrownBy(work);
    expect(error).toBeInstanceOf(Error);
    expect(classifyStepError(error)).toBe(error);
  }
});

test("an error that a step's code constructs is a defect, with its stack", async () => {
  const module = join(await testFolder(), 'step.mjs');
  await writeFile(module, "export const run = () => {\n  throw new Error('given up');\n};\n");
  const error = new Error('given up');
  error.stack = `Error: given up\n    at run (${pathToFileURL(module).href}:2:9)`;
  const told = classifyStepError(error);
  expect(told).toBeInstanceOf(Defect);
  expect((told as Error).stack).toBe(error.stack);
});
