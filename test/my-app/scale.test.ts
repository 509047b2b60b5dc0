/** The example step's own test, to replace with your step: through the whole flow, on a raster whose values are known. */
import { fromArrayBuffer } from 'geotiff';
import { expect, test } from 'vitest';
import myApp from '../../src/my-app/app.ts';
import { deliver, startApp, startSandbox } from '../../src/testing/index.ts';

const pixelsOf = async (bytes: Uint8Array) => {
  const image = await (await fromArrayBuffer(bytes.slice().buffer)).getImage();
  return [...((await image.readRasters()) as unknown as Float32Array[])[0]!];
};

test('every pixel is value * factor + offset', async () => {
  await using platform = await startSandbox({ profile: myApp.profile });
  await using app = await startApp(myApp, { platform });
  const run = (factor: number, offset: number) =>
    deliver(platform, app, { stepId: 'scale', parameters: { band: 'red', factor, offset } });
  const [plain, scaled] = await Promise.all([run(1, 0), run(0.5, 10)]);
  const values = await pixelsOf(plain.bytes);
  expect(new Set(values).size).toBeGreaterThan(100);
  expect(await pixelsOf(scaled.bytes)).toEqual(values.map((value) => Math.fround(value * 0.5 + 10)));
  expect(await platform.verdict(scaled.launchId)).toMatchObject({ result: 'passed' });
}, 900_000);
