/** Wrong versions of the kit's steps: mistakes that people make, in the steps themselves and in what they are made with. */
import type { Mutation } from '../test/support/mutation.ts';

export interface StepMutant {
  readonly name: string;
  /** All at once. */
  readonly mutations: readonly Mutation[];
}

const one = (name: string, file: string, from: string, to: string): StepMutant => ({
  name,
  mutations: [{ file, from, to }],
});

const walk = 'src/raster/block-walk.ts';
const raster = 'src/raster/cog.ts';

/** Of every step that walks strips and makes its raster by `createRaster`. */
const ofStrips = [
  one(
    'the last row is left out',
    walk,
    'for (let y = 0; y < height; y += rows)',
    'for (let y = 0; y < height - 1; y += rows)',
  ),
  one(
    'strips begin a row late',
    walk,
    'output.pixels.write(0, y, width',
    'output.pixels.write(0, Math.min(y + (y > 0 ? 1 : 0), height - count / width), width',
  ),
  one('strips overlap', walk, 'y += rows) {', 'y += Math.max(1, rows - 1)) { if (y > 0 && y % 7 === 0) continue;'),
  one('every strip is the first', walk, 'band.pixels.read(0, y, width', 'band.pixels.read(0, 0, width'),
  one(
    'the second band is read like the first',
    walk,
    'inputs.forEach((band, i) => band.pixels',
    'inputs.forEach((_band, i) => inputs[0]!.pixels',
  ),
  one(
    'everything is read at once',
    walk,
    'const rows = Math.min(height, Math.max(blockRows, Math.floor(wantedRows / blockRows) * blockRows));',
    'const rows = height;',
  ),
  one('a cancel is not looked at', walk, 'context.signal.throwIfAborted();', ''),
  one(
    'a short last strip counts as a whole one',
    walk,
    'const count = width * Math.min(rows, height - y);',
    'const count = width * Math.min(rows, height - y) - (height - y < rows ? width : 0);',
  ),
];
const ofRasters = [
  one(
    'the place is shifted by a pixel',
    raster,
    'if (grid.geoTransform) dataset.geoTransform = [...grid.geoTransform];',
    'if (grid.geoTransform) { const t = [...grid.geoTransform]; t[0] = t[0]! + t[1]!; dataset.geoTransform = t; }',
  ),
  one(
    'the rotation is lost',
    raster,
    'if (grid.geoTransform) dataset.geoTransform = [...grid.geoTransform];',
    'if (grid.geoTransform) { const t = [...grid.geoTransform]; t[2] = 0; t[4] = 0; dataset.geoTransform = t; }',
  ),
  one('the reference system is lost', raster, 'if (grid.srs) dataset.srs = grid.srs;', ''),
  one(
    'the reference system is always the same',
    raster,
    'if (grid.srs) dataset.srs = grid.srs;',
    'dataset.srs = gdal.SpatialReference.fromEPSG(32633);',
  ),
  one(
    'no data is not marked',
    raster,
    '  raster.bands.forEach(({ nodata }, i) => {\n    if (nodata !== undefined) view.bands.get(i + 1).noDataValue = nodata;\n  });\n',
    '',
  ),
];

/** Of a step whose progress nobody hears of, what is cancelled is not told either. */
const ofOwnDeclaration = (file: string, fileName: string): StepMutant[] => [
  one('a promise of another type', file, "dataType: 'Float32', nodata }],", "dataType: 'Float64', nodata }],"),
  one('an output of another name', file, `fileName: '${fileName}'`, "fileName: 'other.tif', optional: true"),
];

const ndvi = 'src/steps/ndvi/index.ts';
const compute = 'src/steps/band-math/compute.ts';
const index = 'src/steps/spectral-index/index.ts';
const catalogue = 'src/steps/spectral-index/catalogue.ts';
const bandMath = 'src/steps/band-math/index.ts';
const expression = 'src/steps/band-math/expression.ts';
const cog = 'src/steps/cog/index.ts';
const hillshade = 'src/steps/hillshade/index.ts';
const slope = 'src/steps/slope/index.ts';
const scale = 'src/my-app/steps/scale/index.ts';
const python = 'src/steps/ndvi-python/ndvi.py';

const ofCompute = [
  one('no data of the first band alone', compute, 'if (gone === null) return;', 'if (gone === null || k > 0) return;'),
  one('no data is not looked at', compute, 'if (gone === null) return;', 'if (gone !== undefined) return;'),
  one('infinity is a value', compute, 'Number.isFinite(Math.fround(piece[i]!)) ? piece[i]! : nodata', 'piece[i]!'),
  one(
    'the end of a piece is left out',
    compute,
    'Math.min(pieceCount, count - from)',
    'Math.min(pieceCount, count - from) - 1',
  ),
  one(
    'bands in another order',
    compute,
    'const bands = parsed.bands.map((name) => scene.findBand(name));',
    'const bands = parsed.bands.map((name) => scene.findBand(name)).toReversed();',
  ),
  one('grids are not compared', compute, 'for (const band of bands) raster.requireSameGrid(first, band);', ''),
  one(
    'the input is written to',
    compute,
    'const first = bands[0]!;',
    "const first = bands[0]!; (await import('node:fs')).appendFileSync(first.dataset.description, ' ');",
  ),
  one(
    'noise is added',
    compute,
    'out[from + i] = Number.isFinite',
    'if (i % 100 === 7) piece[i]! += Math.random() / 100; out[from + i] = Number.isFinite',
  ),
];

const change = 'src/steps/change/index.ts';
const cloudMask = 'src/steps/cloud-mask/index.ts';
const aspect = 'src/steps/aspect/index.ts';
const zonal = 'src/steps/zonal-statistics/index.ts';
const zones = 'src/steps/zones.ts';
const statistics = 'src/steps/zonal-statistics/statistics.ts';

/** The kit's steps that nobody has broken on purpose yet. */
export const notYetBroken: readonly string[] = ['clip', 'contours', 'mosaic', 'polygonize', 'reproject'];

/** Mistakes by step. At least 20 of each. */
export const stepMutants: Readonly<Record<string, readonly StepMutant[]>> = {
  ndvi: [
    ...ofStrips,
    ...ofRasters,
    ...ofOwnDeclaration(ndvi, 'ndvi.tif'),
    one('bands swapped', ndvi, '(va - vb) / sum', '(vb - va) / sum'),
    one('the sum is forgotten', ndvi, '(va - vb) / sum', 'va - vb'),
    one('no data of the first band alone', ndvi, '|| vb === nodataB', ''),
    one('no data of the second band alone', ndvi, '|| va === nodataA', ''),
    one('a sum of 0 is a value', ndvi, 'sum === 0 ||', ''),
    one('NaN is a value', ndvi, '|| Number.isNaN(sum)', ''),
    one('grids are not compared', ndvi, 'raster.requireSameGrid(a, b);', ''),
    one(
      'the same band twice',
      ndvi,
      'const b = scene.findBand(parameters.bandB);',
      'const b = scene.findBand(parameters.bandA);',
    ),
    one('the choice of bands is not looked at', ndvi, 'scene.findBand(parameters.bandA)', "scene.findBand('nir')"),
    one(
      'values are cut to 0 and 1',
      ndvi,
      'missing ? nodata : (va - vb) / sum',
      'missing ? nodata : Math.max(0, (va - vb) / sum)',
    ),
    one('integers are expected', ndvi, 'const sum = va + vb;', 'const sum = (va + vb) & 0xffff;'),
    one('an estimate for a smaller output', ndvi, 'bytesPerPixel: 4.2', 'bytesPerPixel: 0.4'),
    one(
      "errors are the user's",
      ndvi,
      'const a = scene.findBand(parameters.bandA);',
      "const a = scene.findBand(parameters.bandA); if (a.dataset.rasterSize.y === 1) throw new Error('too small');",
    ),
  ],
  'spectral-index': [
    ...ofStrips,
    ...ofRasters,
    ...ofCompute,
    ...ofOwnDeclaration(index, 'index.tif'),
    one('the factor is not looked at', compute, 'values[from + i]! * factor + offset', 'values[from + i]! + offset'),
    one('the offset is not looked at', compute, 'values[from + i]! * factor + offset', 'values[from + i]! * factor'),
    one(
      'the offset comes first',
      compute,
      'values[from + i]! * factor + offset',
      '(values[from + i]! + offset) * factor',
    ),
    one('green for red', catalogue, "formula: '(nir - red) / (nir + red)'", "formula: '(nir - green) / (nir + green)'"),
    one('EVI without its 1', catalogue, '6 * red - 7.5 * blue + 1)', '6 * red - 7.5 * blue)'),
    one(
      'NDWI the other way round',
      catalogue,
      "formula: '(green - nir) / (green + nir)'",
      "formula: '(nir - green) / (green + nir)'",
    ),
    one(
      'NBR by the other short wave',
      catalogue,
      "formula: '(nir - swir22) / (nir + swir22)'",
      "formula: '(nir - swir16) / (nir + swir16)'",
    ),
  ],
  'band-math': [
    ...ofStrips,
    ...ofRasters,
    ...ofCompute,
    ...ofOwnDeclaration(bandMath, 'band-math.tif'),
    one(
      'a difference groups to the right',
      expression,
      'left = combined(tokens[next++]!.text, left, product());',
      'left = combined(tokens[next++]!.text, left, sum());',
    ),
    one(
      'a power groups to the left',
      expression,
      "return combined('^', base, signed());",
      "return combined('^', base, primary());",
    ),
    one('a sign binds stronger than a power', expression, 'const value = signed();', 'const value = primary();'),
    one('the larger is the smaller', expression, 'max: { arity: 2, of: Math.max }', 'max: { arity: 2, of: Math.min }'),
  ],
  scale: [
    ...ofStrips.filter(({ name }) => !name.startsWith('the second band')),
    ...ofRasters,
    ...ofOwnDeclaration(scale, 'scaled.tif'),
    one('the factor is not looked at', scale, ': value * factor + offset', ': value + offset'),
    one('the offset is not looked at', scale, ': value * factor + offset', ': value * factor'),
    one('the offset comes first', scale, ': value * factor + offset', ': (value + offset) * factor'),
    one('no data is not looked at', scale, 'value === missing ||', ''),
    one('NaN is a value', scale, '|| Number.isNaN(value)', ''),
    one('the choice of band is not looked at', scale, 'scene.findBand(band)', 'scene.bands[0]!'),
    one('zero is no data', scale, 'value === missing ||', 'value === 0 || value === missing ||'),
  ],
  cog: [
    one(
      'the place is another',
      raster,
      '.createCopy(\n      path,\n      source,',
      ".createCopy(\n      path,\n      gdal.translate('/vsimem/placed.tif', source, ['-a_ullr', '0', '10', '10', '0']),",
    ),
    one(
      'the second band only',
      cog,
      'scene.onlyRaster(), outputPath',
      "(await import('gdal-async')).default.drivers.get('VRT').open((await import('gdal-async')).default.wrapVRT({ bands: [{ sources: [scene.onlyRaster().bands.get(2)] }] })), outputPath",
    ),
    one(
      'an estimate for a smaller output',
      cog,
      'async run(',
      'estimate: () => ({ outputBytes: 10, seconds: 1, memoryBytes: 1e6 }),\n  async run(',
    ),
    one('half a raster', raster, "'OVERVIEWS=IGNORE_EXISTING'", "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:32634'"),
    one(
      'a rotated raster is turned',
      raster,
      '.createCopy(\n      path,\n      source,',
      ".createCopy(\n      path,\n      source.geoTransform?.[2] ? gdal.warp('/vsimem/w.tif', null, [source], ['-t_srs', 'EPSG:3857']) : source,",
    ),
    one(
      'nothing but the first band',
      cog,
      'scene.onlyRaster(), outputPath',
      "(await import('gdal-async')).default.drivers.get('VRT').open((await import('gdal-async')).default.wrapVRT({ bands: [{ sources: [scene.onlyRaster().bands.get(1)] }] })), outputPath",
    ),
    one('a promise of other bands', cog, "bands: 'as-input'", "bands: [{ description: 'x', dataType: 'Byte' }]"),
    one('an output of another name', cog, "fileName: 'cog.tif'", "fileName: 'other.tif', optional: true"),
    one(
      'nothing is written',
      cog,
      'raster.writeCog(scene.onlyRaster(), outputPath, parameters, share(0, 1));',
      'scene.onlyRaster();',
    ),
    one('it is written to another place', cog, 'outputPath, parameters', "outputPath + '.tif', parameters"),
    one('no progress', cog, 'share(0, 1)', '{ ...share(0, 1), progress: () => {} }'),
    one(
      'an end before the end',
      cog,
      'share(0, 1)',
      "{ ...share(0, 1), progress: () => { throw new Error('half'); } }",
    ),
    one('lossy compression', raster, '`COMPRESS=${options.compression}`', "'COMPRESS=JPEG'"),
    one('a lossy error bound', raster, '`COMPRESS=${options.compression}`', "'COMPRESS=LERC', 'MAX_Z_ERROR=5'"),
    one(
      'another reference system',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:3857'",
    ),
    one(
      'a tiling scheme',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'TILING_SCHEME=GoogleMapsCompatible'",
    ),
    one(
      'another nodata',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'ADD_ALPHA=YES', 'TARGET_SRS=EPSG:4326'",
    ),
    one(
      'the input is written to',
      cog,
      'raster.writeCog(scene',
      "(await import('node:fs')).appendFileSync(scene.datasets[0]!.description, ' '); raster.writeCog(scene",
    ),
    one('no bounds', cog, '.literal([256, 512, 1024])', '.number().transform((side) => side as 256)'),
    one(
      'everything is read at once',
      cog,
      'raster.writeCog(scene',
      'const all = scene.onlyRaster(); all.bands.get(1).pixels.read(0, 0, all.rasterSize.x, all.rasterSize.y); raster.writeCog(scene',
    ),
  ],
  hillshade: [
    ...ofRasters.filter(({ name }) => !name.includes('rotation')),
    ...ofOwnDeclaration(hillshade, 'hillshade.tif').slice(1),
    one(
      'a promise of another type',
      hillshade,
      "dataType: 'Byte', nodata: 0 }],\n    preview",
      "dataType: 'Float32', nodata: 0 }],\n    preview",
    ),
    one('the light comes from the other side', hillshade, 'parameters.azimuth,', '(parameters.azimuth + 180) % 360,'),
    one('the azimuth is not looked at', hillshade, 'parameters.azimuth,', '315,'),
    one('the altitude is not looked at', hillshade, 'parameters.altitude,', '45,'),
    one('the z factor is not looked at', hillshade, 'parameters.zFactor,', '1,'),
    one('the z factor divides', hillshade, 'parameters.zFactor,', '1 / parameters.zFactor,'),
    one(
      'azimuth and altitude swapped',
      hillshade,
      "'-az',\n      parameters.azimuth,\n      '-alt',\n      parameters.altitude,",
      "'-alt',\n      parameters.azimuth,\n      '-az',\n      parameters.altitude,",
    ),
    one('metres are degrees', hillshade, 'isGeographic() ? metresOfDegree : 1', 'isGeographic() ? 1 : metresOfDegree'),
    one('slope in place of shade', hillshade, "'hillshade',\n      [", "'slope',\n      ["),
    one('edges are left out', hillshade, "'-compute_edges',", "'-alg', 'ZevenbergenThorne', '-combined',"),
    one('NaN is a height', hillshade, 'const dataset = withGaps(gdal, found);', 'const dataset = found.dataset;'),
    one('a cancel is not looked at', hillshade, 'signal.throwIfAborted();', ''),
    one(
      'the last rows are left out',
      hillshade,
      'y < grid.height; y += stripRows',
      'y + stripRows <= grid.height; y += stripRows',
    ),
    one(
      'every strip is the first',
      hillshade,
      'shaded.bands.get(1).pixels.read(0, y, grid.width',
      'shaded.bands.get(1).pixels.read(0, 0, grid.width',
    ),
    one('everything is read at once', hillshade, 'const stripRows = 256;', 'const stripRows = grid.height;'),
    one('an estimate for a larger output', hillshade, 'bytesPerPixel: 0.7', 'bytesPerPixel: 7'),
    one('the choice of band is not looked at', hillshade, 'scene.findBand(parameters.band)', 'scene.bands[0]!'),
  ],
  slope: [
    one('a share of the height', slope, "'-compute_edges',", "'-compute_edges', '-p',"),
    one('the scale is not looked at', slope, "'{scale}'", "'1'"),
    one('aspect in place of slope', slope, "'slope',\n      '{input}'", "'aspect',\n      '{input}'"),
    one('shade in place of slope', slope, "'slope',\n      '{input}'", "'hillshade',\n      '{input}'"),
    one('roughness in place of slope', slope, "'slope',\n      '{input}'", "'roughness',\n      '{input}'"),
    one(
      'another program',
      slope,
      "'gdaldem',\n      'slope',\n      '{input}',\n      '{output}',",
      "'gdal_translate',\n      '{input}',\n      '{output}', '-q',",
    ),
    one('a program that is not there', slope, "'gdaldem',", "'gdaldemm',"),
    one('no output', slope, "'{output}'", "'{work}/other.tif'"),
    one('the input is the output', slope, "'{output}'", "'{input}'"),
    one('another format', slope, "'COG', '-co', 'COMPRESS=DEFLATE'", "'PNG'"),
    one('lossy compression', slope, "'COMPRESS=DEFLATE'", "'COMPRESS=LERC', '-co', 'MAX_Z_ERROR=1'"),
    one('bytes', slope, "dataType: 'Float32'", "dataType: 'Byte'"),
    one('another nodata', slope, 'nodata: -9999', 'nodata: 0'),
    one('no nodata', slope, ', nodata: -9999', ''),
    one('two bands promised', slope, 'bands: [{', "bands: [{ description: 'x', dataType: 'Float32' }, {"),
    one('an output of another name', slope, "fileName: 'slope.tif'", "fileName: 'other.tif', optional: true"),
    one('scale without a bound', slope, '.max(1_000_000)', ''),
    one('progress that nobody can read', slope, "progress: 'percent'", "progress: 'json'"),
    one('an estimate for a smaller output', slope, 'bytesPerPixel: 4.2', 'bytesPerPixel: 0.4'),
    one('another reference system', slope, "'COMPRESS=DEFLATE'", "'COMPRESS=DEFLATE', '-co', 'TARGET_SRS=EPSG:3857'"),
    one('a tenth of the scale', slope, "'{scale}'", "'{scale}0'"),
  ],
  'ndvi-python': [
    one('bands swapped', python, '(va - vb) / total', '(vb - va) / total'),
    one('the sum is forgotten', python, '(va - vb) / total', '(va - vb)'),
    one('a sum of 0 is a value', python, 'gone = (total == 0) | np.isnan(total)', 'gone = np.isnan(total)'),
    one('NaN is a value', python, 'gone = (total == 0) | np.isnan(total)', 'gone = total == 0'),
    one('no data is not looked at', python, 'if nodata is not None:', 'if False:'),
    one('no data of the first band alone', python, '((va, missing[0]), (vb, missing[1]))', '((va, missing[0]),)'),
    one(
      'no data of the other band',
      python,
      '((va, missing[0]), (vb, missing[1]))',
      '((va, missing[1]), (vb, missing[0]))',
    ),
    one('sums of 16 bits overflow', python, '.astype(np.float64) for', 'for'),
    one('bytes come out', python, 'values.astype(np.float32)', 'np.rint(values)'),
    one(
      'the last strip is left out',
      python,
      'for row in range(0, height, STRIP_ROWS):',
      'for row in range(0, max(1, height - STRIP_ROWS), STRIP_ROWS):',
    ),
    one(
      'every strip is the first',
      python,
      'band.ReadAsArray(0, row, width, rows)',
      'band.ReadAsArray(0, 0, width, rows)',
    ),
    one(
      'strips are written a row late',
      python,
      'WriteArray(values.astype(np.float32), 0, row)',
      'WriteArray(values.astype(np.float32), 0, min(row + (1 if row else 0), height - rows))',
    ),
    one(
      'the place is shifted',
      python,
      'difference.SetGeoTransform(first.GetGeoTransform())',
      'difference.SetGeoTransform([v + (30 if i == 0 else 0) for i, v in enumerate(first.GetGeoTransform())])',
    ),
    one('the place is lost', python, 'difference.SetGeoTransform(first.GetGeoTransform())', ''),
    one('the reference system is lost', python, 'difference.SetProjection(first.GetProjection())', ''),
    one('no data is not marked', python, 'target.SetNoDataValue(NODATA)', ''),
    one('grids are not compared', python, 'if grid(first) != grid(second):', 'if False:'),
    one('the same band twice', python, '("bandA", "bandB")', '("bandA", "bandA")'),
    one('an error without words', python, 'marketplace_step.refuse("the two bands', 'raise ValueError("the two bands'),
    one('whole numbers', python, 'gdal.GDT_Float32', 'gdal.GDT_Int16'),
    one('no progress', python, 'import numpy as np', 'import numpy as np\nmarketplace_step.progress = lambda *_: None'),
  ],
  change: [
    ...ofStrips,
    ...ofRasters,
    ...ofOwnDeclaration(change, 'change.tif'),
    one(
      'before minus after',
      change,
      'difference: (before: number, after: number) => after - before',
      'difference: (before: number, after: number) => before - after',
    ),
    one(
      'a share of the value after',
      change,
      '(after - before) / Math.abs(before)',
      '(after - before) / Math.abs(after)',
    ),
    one('a negative share turns', change, '/ Math.abs(before)', '/ before'),
    one(
      'the scenes swapped',
      change,
      '[inputs.before.findBand(parameters.band), inputs.after.findBand(parameters.band)]',
      '[inputs.after.findBand(parameters.band), inputs.before.findBand(parameters.band)]',
    ),
    one(
      'the same scene twice',
      change,
      'inputs.after.findBand(parameters.band)',
      'inputs.before.findBand(parameters.band)',
    ),
    one('no data of the scene before alone', change, '|| b === goneAfter', ''),
    one('no data of the other scene', change, 'a === gone || b === goneAfter', 'a === goneAfter || b === gone'),
    one('infinity is a value', change, '|| !Number.isFinite(Math.fround(value))', ''),
    one('grids are not compared', change, 'raster.requireSameGrid(before, after);', ''),
    one('always the difference', change, 'measures[parameters.measure]', 'measures.difference'),
  ],
  'cloud-mask': [
    ...ofStrips,
    ...ofRasters.filter(({ name }) => !name.startsWith('no data')),
    one('a promise of another type', cloudMask, "dataType: 'Float32', nodata }],", "dataType: 'Float64', nodata }],"),
    one(
      'an output that may be missing is not there',
      cloudMask,
      "fileName: 'mask.tif'",
      "fileName: 'other.tif', optional: true",
    ),
    one('bits are numbered from 1', cloudMask, '1 << Number(bit)', '1 << (Number(bit) - 1)'),
    one('the last bit alone', cloudMask, 'sum | (1 << Number(bit))', '1 << Number(bit)'),
    one('what is marked is kept', cloudMask, '(value & bits) !== 0', '(value & bits) === 0'),
    one('every bit has to be set', cloudMask, '(value & bits) !== 0', '(value & bits) === bits'),
    one('no data of the quality band is clear sky', cloudMask, 'value === fill ||', ''),
    one(
      'NaN of the quality band is clear sky',
      cloudMask,
      '|| Number.isNaN(value) || (value & bits)',
      '|| (value & bits)',
    ),
    one('no data of the band is kept', cloudMask, '|| value === gone', ''),
    one('the mask the other way round', cloudMask, '? 1 : 0', '? 0 : 1'),
    one('the bands swapped', cloudMask, '[kept.band, quality.band]', '[quality.band, kept.band]'),
    one('grids are not compared', cloudMask, 'raster.requireSameGrid(kept, quality);', ''),
    one(
      'the outputs swapped',
      cloudMask,
      'raster.writeCog(mask, outputs.mask,',
      'raster.writeCog(mask, outputs.masked,',
    ),
  ],
  aspect: [
    ...ofOwnDeclaration(aspect, 'aspect.tif').slice(1),
    one(
      'a promise of another type',
      aspect,
      "dataType: 'Float32', nodata: -9999 }]",
      "dataType: 'Byte', nodata: -9999 }]",
    ),
    one('another nodata', aspect, 'nodata: -9999', 'nodata: 0'),
    one('slope in place of aspect', aspect, "'aspect',\n      ['-b'", "'slope',\n      ['-b'"),
    one('shade in place of aspect', aspect, "'aspect',\n      ['-b'", "'hillshade',\n      ['-b'"),
    one('degrees counterclockwise from east', aspect, "'-compute_edges',", "'-compute_edges', '-trigonometric',"),
    one('level ground faces north', aspect, "'-compute_edges',", "'-compute_edges', '-zero_for_flat',"),
    one('the choice of band is not looked at', aspect, 'scene.findBand(parameters.band)', 'scene.bands[0]!'),
    one('NaN is a height', aspect, 'const dataset = withGaps(gdal, found);', 'const dataset = found.dataset;'),
    one('a cancel is not looked at', aspect, 'signal.throwIfAborted();', ''),
    one('no progress', aspect, 'progress_cb: (fraction) => computing.progress(fraction)', 'progress_cb: () => {}'),
    one('an estimate for a smaller output', aspect, 'bytesPerPixel: 4.2', 'bytesPerPixel: 0.2'),
    one('an estimate for a larger output', aspect, 'bytesPerPixel: 4.2', 'bytesPerPixel: 42'),
    one('the input is the output', aspect, 'raster.writeCog(\n      aspect,', 'raster.writeCog(\n      found.dataset,'),
    one('bytes', aspect, "'-of', 'GTiff', '-co', 'TILED=YES'", "'-of', 'PNG', '-co', 'WORLDFILE=NO'"),
    one(
      'everything is read at once',
      aspect,
      'signal.throwIfAborted();',
      'signal.throwIfAborted(); aspect.bands.get(1).pixels.read(0, 0, aspect.rasterSize.x, aspect.rasterSize.y);',
    ),
    one(
      'the input is written to',
      aspect,
      'signal.throwIfAborted();',
      "signal.throwIfAborted(); (await import('node:fs')).appendFileSync(found.dataset.description, ' ');",
    ),
    one('lossy compression', raster, '`COMPRESS=${options.compression}`', "'COMPRESS=LERC', 'MAX_Z_ERROR=5'"),
    one(
      'another reference system',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:3857'",
    ),
    one('nothing is written', aspect, 'aspect,\n      outputPath,', "aspect, outputPath + '.tif',"),
    one(
      'noise is added',
      aspect,
      'const dataset = withGaps(gdal, found);',
      "const dataset = withGaps(gdal, found); if (Math.random() < 0.5) throw new Error('noise');",
    ),
  ],
  'zonal-statistics': [
    one('the first zone is none', zonal, 'ofZones[i]! - 1', 'ofZones[i]!'),
    one('no data is counted', zonal, 'value !== values.noDataValue &&', ''),
    one('every strip is the first', zonal, 'values.pixels.read(0, y, width', 'values.pixels.read(0, 0, width'),
    one(
      'the last strip is left out',
      zonal,
      'for (let y = 0; y < height; y += rows)',
      'for (let y = 0; y < Math.max(1, height - rows); y += rows)',
    ),
    one('everything is read at once', zonal, 'const stripPixels = 200_000;', 'const stripPixels = Infinity;'),
    one('a cancel is not looked at', zonal, 'signal.throwIfAborted();', ''),
    one('no progress', zonal, 'counting.progress(Math.min(1, (y + rows) / height));', ''),
    one(
      'zones without a pixel are left out',
      zonal,
      'const results = zones.map(',
      'const results = zones.filter((_zone, i) => statistics[i]!.count > 0).map(',
    ),
    one(
      'a run without any pixel is none',
      zonal,
      'statistics.every(({ count }) => count === 0)',
      'statistics.length === 0',
    ),
    one('an unknown field is nobody', zonal, "parameters.label !== '' && !layer", "parameters.label === '' && !layer"),
    one('zones are always numbered', zones, "label === '' ? undefined", 'label !== null ? undefined'),
    one('zones are numbered from 0', zones, 'String(i + 1)', 'String(i)'),
    one('points are zones', zones, "geometry?.type === 'MultiPolygon'", 'geometry'),
    one('every touched pixel counts', zones, "'-a', 'number',", "'-at', '-a', 'number',"),
    one('all zones are one', zones, 'properties: { number: i + 1 }', 'properties: { number: 1 }'),
    one('the deviation of a sample', statistics, 'this.#squares / this.count', 'this.#squares / (this.count - 1)'),
    one('the variance', statistics, 'Math.sqrt(this.#squares / this.count)', 'this.#squares / this.count'),
    one('the mean of the last', statistics, 'this.#mean += step / this.count;', 'this.#mean = value;'),
    one('the smallest is 0', statistics, '#min = Infinity', '#min = 0'),
    one('extremes swapped', statistics, 'min: of(this.#min),', 'min: of(this.#max),'),
    one('no values have a mean of 0', statistics, 'this.count === 0 ? null : value', 'value'),
    one('a formula in the table', statistics, '/^[=+\\-@\\t\\r]/.test(value)', 'false'),
  ],
};
