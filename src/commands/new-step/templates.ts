/** What `new-step` writes. */

export interface StepNames {
  /** `snow-cover` */
  readonly id: string;
  /** `snowCover` */
  readonly variable: string;
  /** `Snow cover` */
  readonly title: string;
  /** The kit, as a step of the room imports it. */
  readonly kit: string;
}

export interface OutputNames {
  readonly fileName: string;
  readonly bands: readonly { readonly dataType: string; readonly nodata: number | null }[];
}

const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const declaration = ({ id, title }: StepNames, does: string) => `  id: ${quoted(id)},
  version: '1.0.0',
  cases: new URL('./cases.json', import.meta.url),
  title: ${quoted(title)},
  description: ${quoted(does)},`;

const factor = `    band: band({ default: 'nir', title: 'Band', description: 'Name or number of the band.' }),
    factor: z
      .number()
      .min(-1000)
      .max(1000)
      .default(1)
      .meta({ title: 'Factor', description: 'The factor that multiplies every value.' }),`;

const oneBand = (fileName: string) => `  output: {
    fileName: ${quoted(fileName)},
    sourceType: 'UNKNOWN',
    bands: [{ description: 'result', dataType: 'Float32', nodata }],
    preview: { ramp: 'gray' },
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 3.2, secondsPerMegapixel: 0.1 }),`;

export const typescriptStep = (
  names: StepNames,
): string => `import { band, defineStep, estimateCog, z } from ${quoted(names.kit)};

const nodata = -9999;

/** Multiplies one band, strip by strip: put your own arithmetic in its place. */
export default defineStep({
${declaration(names, 'Multiplies one band of the input.')}
  parameters: z.object({
${factor}
  }),
  input: { description: 'One raster, or a scene with the band.', synthetic: 'multispectral' },
${oneBand(`${names.id}.tif`)}
  async run({ parameters: { band, factor }, scene, raster, outputPath, workFolder, share }) {
    const source = scene.findBand(band);
    const missing = source.band.noDataValue;
    const result = await raster.createRaster(
      {
        path: \`\${workFolder}/result.tif\`,
        grid: raster.gridOf(source.dataset),
        dataType: 'Float32',
        bands: [{ description: 'result', nodata }],
      },
      (target) =>
        raster.walkStrips(
          [source.band],
          target.bands.get(1),
          ([values = []], out, count) => {
            for (let i = 0; i < count; i++) {
              const value = values[i]!;
              out[i] = value === missing || Number.isNaN(value) ? nodata : value * factor;
            }
          },
          share(0, 0.5),
        ),
    );
    raster.writeCog(
      result,
      outputPath,
      { compression: 'DEFLATE', blockSize: 512, resampling: 'AVERAGE' },
      share(0.5, 1),
    );
    result.close();
  },
});
`;

export const pythonStep = (
  names: StepNames,
): string => `import { band, command, defineStep, estimateCog, z } from ${quoted(names.kit)};

const nodata = -9999;

/** Multiplies one band, by ${names.id}.py beside it (python3-gdal): put your own arithmetic there. */
export default defineStep({
${declaration(names, 'Multiplies one band of the input.')}
  parameters: z.object({
${factor}
  }),
  input: { description: 'One raster, or a scene with the band.', synthetic: 'multispectral' },
${oneBand(`${names.id}.tif`)}
  run: command({ argv: ['python3', '{code}/${names.id}.py', '{job}'], code: import.meta.url }),
});
`;

export const pythonProgram = (): string => `"""Multiplies one band, strip by strip."""

import marketplace_step
import numpy as np
from osgeo import gdal

gdal.UseExceptions()
NODATA = -9999.0
STRIP_ROWS = 256

job = marketplace_step.load()
source = job.band(job.parameters["band"])
dataset = gdal.Open(source.path)
band = dataset.GetRasterBand(source.index)
missing = band.GetNoDataValue()
width, height = dataset.RasterXSize, dataset.RasterYSize

temporary = f"{job.work_folder}/result.tif"
result = gdal.GetDriverByName("GTiff").Create(temporary, width, height, 1, gdal.GDT_Float32, ["TILED=YES", "BIGTIFF=IF_SAFER"])
result.SetGeoTransform(dataset.GetGeoTransform())
result.SetProjection(dataset.GetProjection())
result.SetMetadata(job.metadata)
target = result.GetRasterBand(1)
target.SetNoDataValue(NODATA)
target.SetDescription("result")

for row in range(0, height, STRIP_ROWS):
    rows = min(STRIP_ROWS, height - row)
    values = band.ReadAsArray(0, row, width, rows).astype(np.float64)
    gone = np.isnan(values) if missing is None else np.isnan(values) | (values == missing)
    target.WriteArray(np.where(gone, NODATA, values * job.parameters["factor"]).astype(np.float32), 0, row)
    marketplace_step.progress(0.6 * (row + rows) / height)

result.FlushCache()
gdal.GetDriverByName("COG").CreateCopy(
    job.output,
    result,
    options=["COMPRESS=DEFLATE", "PREDICTOR=YES", "NUM_THREADS=ALL_CPUS", "BIGTIFF=IF_SAFER"],
    callback=lambda fraction, *_: marketplace_step.progress(0.6 + 0.4 * fraction) or 1,
)
`;

/** Of both: the same arithmetic. */
export const factorCases = {
  cases: [
    {
      name: 'every value times the factor',
      parameters: { band: 'numbers', factor: 0.5 },
      inputs: { input: [{ name: 'scene.tif', bands: [{ name: 'numbers', values: 'mod(x * 7 + y * 3, 250)' }] }] },
      expect: { output: { value: 'numbers * 0.5' } },
    },
    {
      name: 'no data stays no data',
      parameters: { band: 'numbers', factor: 2 },
      inputs: {
        input: [{ name: 'scene.tif', width: 3, height: 1, nodata: 1, bands: [{ name: 'numbers', values: 'x' }] }],
      },
      expect: { output: { pixels: [0, null, 4] } },
    },
    {
      name: 'a band that is not there',
      parameters: { band: 'nir' },
      inputs: { input: [{ name: 'scene.tif', bands: [{ name: 'numbers', values: 'x' }] }] },
      refused: 'band_not_found',
    },
  ],
};

/** The step of a program; `output` is null as long as nobody has seen what it leaves. */
export function commandStep(
  names: StepNames,
  argv: readonly string[],
  fileName: string,
  output: OutputNames | 'as-input' | null,
): string {
  const bands =
    output === 'as-input'
      ? `'as-input'`
      : output
        ? `[${output.bands
            .map(
              ({ dataType, nodata }, i) =>
                `{ description: 'band ${i + 1}', dataType: ${quoted(dataType)}${nodata === null ? '' : `, nodata: ${Object.is(nodata, NaN) ? 'NaN' : nodata}`} }`,
            )
            .join(', ')}]`
        : `[]`;
  const outputs = output
    ? `  output: {
    fileName: ${quoted(fileName)},
    sourceType: 'UNKNOWN',
    bands: ${bands},
    preview: { ramp: 'gray' },
  },`
    : `  outputs: { output: { kind: 'file', fileName: ${quoted(fileName)}, sourceType: 'UNKNOWN' } },`;
  return `import { command, defineStep, z } from ${quoted(names.kit)};

/** By ${argv[0]}: see its own documentation for what it does. */
export default defineStep({
${declaration(
  names,
  `What ${argv
    .slice(0, 2)
    .filter((one) => !one.startsWith('{'))
    .join(' ')} makes of one raster.`,
)}
  parameters: z.object({}),
  input: { description: 'One raster.', mostItems: 1, synthetic: 'elevation' },
${outputs}
  run: command({
    argv: [${argv.map(quoted).join(', ')}],
    progress: 'percent',
  }),
});
`;
}

export const testFile = (
  id: string,
  app: string,
  testing: string,
): string => `/** All that a step must do, and its own cases (cases.json beside it). */
import { test } from 'vitest';
import myApp from ${quoted(app)};
import { testStep } from ${quoted(testing)};

testStep(myApp, ${quoted(id)}, { test }, { largeSide: 2048 });
`;
