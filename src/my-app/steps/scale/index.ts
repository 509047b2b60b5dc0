import { band, definePixelStep, z } from '../../../index.ts';

const number = (title: string, description: string, value: number) =>
  z.number().min(-1e6).max(1e6).default(value).meta({ title, description });

/** An example to replace by your own: measured values from the numbers that a file stores, as value * factor + offset. */
export default definePixelStep({
  id: 'scale',
  version: '2.1.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Scale and offset',
  description:
    'Makes measured values of stored numbers: value × factor + offset. The defaults are those of Landsat Collection 2 surface reflectance.',
  bands: { band: band({ default: '1', title: 'Band', description: 'Name or number of the band.' }) },
  isStored: true,
  parameters: z.object({
    factor: number('Factor', 'The factor that multiplies stored numbers.', 0.0000275),
    offset: number('Offset', 'The number to add.', -0.2),
  }),
  output: { fileName: 'scaled.tif', bands: [{ description: 'scaled', dataType: 'Float32' }] },
  pixel:
    ({ factor, offset }) =>
    (value) =>
      value * factor + offset,
});
