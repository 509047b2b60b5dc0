import { band, definePixelStep, estimateCog, z } from '../step-kit.ts';

interface Stop {
  readonly value: number;
  readonly rgb: readonly [number, number, number];
}

const stop = /^\s*(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s+#([0-9a-fA-F]{6})\s*$/;

/** The colours of `0 #1a9641, 500 #ffffbf`, from the lowest value on; null where the text is none. */
function stopsOf(text: string): Stop[] | null {
  const found = text.split(',').map((part) => stop.exec(part));
  if (found.length < 2 || found.some((point) => point === null)) return null;
  const stops = found.map((point): Stop => {
    const hex = Number.parseInt(point![2]!, 16);
    return { value: Number(point![1]), rgb: [hex >> 16, (hex >> 8) & 255, hex & 255] };
  });
  stops.sort((a, b) => a.value - b.value);
  return stops.some(({ value }, i) => value === stops[i - 1]?.value) ? null : stops;
}

/** Colours by value, as a picture with a place. */
export default definePixelStep({
  id: 'color-relief',
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Colour relief',
  description: 'Colours a band by its values: heights, for instance. Comes out as red, green and blue.',
  bands: { band: band({ default: '1', title: 'Band', description: 'Name or number of the band.' }) },
  parameters: z.object({
    colors: z
      .string()
      .max(2_000)
      .refine(
        (text) => stopsOf(text) !== null,
        'must be two or more different values with a colour each, such as 0 #1a9641, 500 #ffffbf',
      )
      .default('0 #1a9641, 250 #a6d96a, 500 #ffffbf, 1000 #d7a16b, 2000 #8c6d5a, 4000 #ffffff')
      .meta({
        title: 'Colours',
        description:
          'Values, each with its colour, and commas between them. Beyond the first and the last their colours go on.',
      }),
    between: z.enum(['mixed', 'steps']).default('mixed').meta({
      title: 'Between them',
      description: 'mixed: colours mix from one value to the next. steps: a colour holds up to the next value.',
    }),
  }),
  input: { description: 'One raster.', maxItems: 1, synthetic: 'elevation' },
  output: {
    fileName: 'color-relief.tif',
    sourceType: 'UNKNOWN',
    bands: [
      { description: 'red', dataType: 'Byte', nodata: 0 },
      { description: 'green', dataType: 'Byte', nodata: 0 },
      { description: 'blue', dataType: 'Byte', nodata: 0 },
    ],
    preview: { ramp: 'gray', range: [1, 255] },
    overviews: 'AVERAGE',
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 1.2, secondsPerMegapixel: 0.1 }),
  pixel: ({ colors, between }) => {
    const stops = stopsOf(colors)!;
    return (value) => {
      let i = 0;
      while (i < stops.length - 1 && stops[i + 1]!.value <= value) i++;
      const [from, to] = [stops[i]!, stops[i + 1]];
      const share = between === 'steps' || !to ? 0 : Math.max(0, (value - from.value) / (to.value - from.value));
      // 0 marks no data.
      return from.rgb.map((channel, k) => Math.max(1, channel + share * ((to ?? from).rgb[k]! - channel)));
    };
  },
});
