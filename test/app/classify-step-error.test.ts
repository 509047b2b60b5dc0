/** Plain errors that no run of a step brings about at will: without a stack, or from the kit's own code. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import gdal from 'gdal-async';
import { expect, test } from 'vitest';
import { classifyStepError } from '../../src/app/processing/classify-step-error.ts';
import { Defect } from '../../src/child/in-child.ts';
import { cog } from '../../src/steps/index.ts';
import badSteps from '../support/bad-steps.ts';
import { testFolder } from '../support/folders.ts';

const ownStep = badSteps.steps[0]!;
const withStack = (stack: string) => Object.assign(new Error('read failed'), { stack: `Error: read failed${stack}` });
const kitFrame = `\n    at walk (${new URL('../../src/raster/block-walk.ts', import.meta.url).href}:1:1)`;
const forkFrame = `\n    at run (${new URL('../../src/my-app/app.ts', import.meta.url).href}:1:1)`;

test('an asynchronous GDAL error of a kit step stays an input error, and is a defect of another step', async () => {
  const error = await gdal.openAsync('/nothing.tif').catch((reason: unknown) => reason);
  expect(await classifyStepError(error, cog, [])).toBe(error);
  expect(await classifyStepError(error, ownStep, [])).toBeInstanceOf(Defect);
});

test("the kit's own readers stay input errors; code of a fork below them does not", async () => {
  const ofKit = withStack(kitFrame);
  expect(await classifyStepError(ofKit, ownStep, [])).toBe(ofKit);
  const ofFork = withStack(kitFrame + forkFrame);
  const defect = await classifyStepError(ofFork, ownStep, []);
  expect(defect).toBeInstanceOf(Defect);
  expect((defect as Error).stack).toBe(ofFork.stack);
});

test('features that cannot be read are the reason, and features that can be read are not', async () => {
  const path = join(await testFolder(), 'features.geojson');
  const point = { type: 'Feature', properties: {}, geometry: { type: 'Point', coordinates: [1, 2] } };
  const features = { type: 'FeatureCollection', features: [point, { ...point, geometry: null }] };
  await writeFile(path, JSON.stringify(features));
  const dataset = gdal.open(path);
  expect(await classifyStepError(withStack(forkFrame), ownStep, [{ datasets: [dataset] }])).toBeInstanceOf(Defect);
  dataset.close();
  const reason = await classifyStepError(withStack(forkFrame), ownStep, [{ datasets: [dataset] }]);
  expect(reason).not.toBeInstanceOf(Defect);
  expect((reason as Error).message).toMatch(/closed|destroyed/);
});
