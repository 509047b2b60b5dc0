/** Wrong versions of the kit's steps: mistakes that people make, in the steps themselves and in what they are made with. */
import type { Mutation } from '../../test/support/mutation.ts';

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
const reader = 'src/raster/band-reader.ts';
const pixels = 'src/steps/pixel-step.ts';
const terrain = 'src/steps/terrain.ts';
const warp = 'src/steps/warp.ts';
const zones = 'src/steps/zones.ts';
const cut = 'src/steps/clip/cut.ts';

const noNodata =
  '  bands.forEach(({ nodata }, i) => {\n    if (nodata !== undefined) view.bands.get(i + 1).noDataValue = nodata;\n  });\n';
const overviews = "'OVERVIEWS=IGNORE_EXISTING'";

/** Mutants of every step that works in strips. */
const ofEachStrip = [
  one(
    'the last row is left out',
    walk,
    'for (let y = 0; y < height; y += rows)',
    'for (let y = 0; y < height - 1; y += rows)',
  ),
  one('a row between strips is left out', walk, 'y += rows) {', 'y += rows + 1) {'),
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
    'visit(y, Math.min(rows, height - y));',
    'visit(y, Math.max(1, Math.min(rows, height - y) - (height - y < rows ? 1 : 0)));',
  ),
];
/** Mutants of the shared code under every pixel step. */
const ofPixels = [
  one(
    'strips begin a row late',
    walk,
    'band.pixels.write(0, row, width, rows, values);',
    'band.pixels.write(0, Math.min(row + (row > 0 ? 1 : 0), height - rows), width, rows, values);',
  ),
  one('every strip is the first', walk, 'reader.read([0, y - above, width', 'reader.read([0, 0, width'),
  one('no data is a value', reader, 'for (const missing of this.#missing)', 'for (const missing of [] as number[])'),
  one('the mask is not looked at', reader, 'if (!this.#mask) return;', 'if (this.#mask !== undefined) return;'),
  one('bytes have no sign', reader, 'this.#isSigned = isSignedByte(band);', 'this.#isSigned = false;'),
  one(
    'the offset of a file is not looked at',
    reader,
    'values[i] = values[i]! * factor + offset;',
    'values[i] = values[i]! * factor;',
  ),
  one(
    'the scale of a file is not looked at',
    reader,
    'values[i] = values[i]! * factor + offset;',
    'values[i] = values[i]! + offset;',
  ),
  one('grids are not compared', pixels, 'for (const other of bands) raster.requireSameGrid(first, other);', ''),
  one(
    'infinity is a value',
    pixels,
    'if (values[i]! - values[i]! !== 0) values[i] = nodata;',
    'if (Number.isNaN(values[i])) values[i] = nodata;',
  ),
  one(
    'no data comes out as 0',
    pixels,
    'if (values[i]! - values[i]! !== 0) values[i] = nodata;',
    'if (values[i]! - values[i]! !== 0) values[i] = 0;',
  ),
  one('compressed before it is computed', pixels, 'block?.(inputs, outputs, strip);', ''),
  one('nothing is written', pixels, '    output.path,\n', '    `${output.path}.tif`,\n'),
  one(
    'no progress',
    pixels,
    'share(0, isPart ? 1 : computePart),',
    '{ ...share(0, computePart), progress: () => {} },',
  ),
  one(
    'noise is added',
    pixels,
    'block?.(inputs, outputs, strip);',
    'block?.(inputs, outputs, strip); outputs[0]![0]! += Math.random();',
  ),
  one(
    'the input is written to',
    pixels,
    'const grid = raster.gridOf(first.dataset);',
    "const grid = raster.gridOf(first.dataset); (await import('node:fs')).appendFileSync(first.dataset.description, ' ');",
  ),
];
/** Mutants of the shared code under slope, aspect and hillshade. */
const ofGround = [
  one('east is west', terrain, 'inverse[0] = d / determinant / 8;', 'inverse[0] = -d / determinant / 8;'),
  one('north is south', terrain, 'inverse[3] = a / determinant / 8;', 'inverse[3] = -a / determinant / 8;'),
  one('half as steep', terrain, 'inverse[0] = d / determinant / 8;', 'inverse[0] = d / determinant / 16;'),
  one(
    'rows are as high as columns are wide',
    terrain,
    'const determinant = a * d - b * c;',
    'const determinant = -a * a;',
  ),
  one(
    'a neighbour without a value is 0',
    terrain,
    'window[k] = Number.isNaN(value) ? centre : value;',
    'window[k] = Number.isNaN(value) ? 0 : value;',
  ),
  one(
    'the ground ends at the edge',
    terrain,
    'value = 2 * heights[at + across]! - heights[at - dy * stride + across]!;',
    'value = heights[at + across]!;',
  ),
];

/** Mutants of the shared code under reproject and mosaic. */
const ofWarps = [
  one('what nothing covers is 0', warp, "['-dstnodata', String(known)]", "['-dstnodata', 'None']"),
  one('no mask where there is no value for gaps', warp, "...(needsMask ? ['-dstalpha'] : []),", ''),
  one(
    'the mask is thrown away',
    'src/steps/wide-copy.ts',
    "(isCovered && !isWanted) || nodata !== null ? ['-mask', 'none']",
    "(isCovered && !isWanted) || nodata !== null || count > 0 ? ['-mask', 'none']",
  ),
  one('NaN of an input is a value', warp, 'named[i] ?? (isReal ? NaN : null)', 'named[i] ?? null'),
  one(
    'no progress',
    warp,
    'context.progress,\n    );\n    signal.throwIfAborted();\n    if (!needsMask)',
    '() => {},\n    );\n    signal.throwIfAborted();\n    if (!needsMask)',
  ),
  one('nothing is warped', warp, '...args.map(String),\n        ...(known === null', '...(known === null'),
  one(
    'a smaller raster',
    warp,
    '...args.map(String),\n        ...(known === null',
    "...args.map(String), '-ts', '10', '10',\n        ...(known === null",
  ),
  one(
    'sources that differ are warped as they are',
    warp,
    'made = needsWideCopy(sources, args, options)',
    'made = sources.length > 99',
  ),
  one('the scale is lost', warp, 'keepScales(made, scales);', ''),
  one('an additional alpha band', warp, "...(needsMask ? ['-dstalpha'] : []),", "'-dstalpha',"),
];

/** Mutants of the shared code under clip and zonal statistics. */
const ofAreas = [
  one(
    'an area without its holes',
    zones,
    'return polygons.flatMap((polygon) =>',
    'return polygons.map((one) => one.slice(0, 1)).flatMap((polygon) =>',
  ),
  one(
    'the first part alone',
    zones,
    'return polygons.flatMap((polygon) =>',
    'return polygons.slice(0, 1).flatMap((polygon) =>',
  ),
  one('a row late', zones, 'const centre = row + 0.5;', 'const centre = row + 1.5;'),
  one('a column late', zones, '(high - low) + 0.5)', '(high - low) + 1.5)'),
  one(
    'all of the bounds',
    zones,
    'mask.fill(0, 0, width * height);',
    'mask.fill(1, 0, width * height); if (width > 0) return;',
  ),
  one('places are not those of the raster', zones, "'-t_srs', srs.toWKT()]", "'-t_srs', 'EPSG:4326']"),
  one('the window begins a pixel late', zones, 'Math.floor(left + slack)', 'Math.floor(left + slack) + 1'),
  one('the window ends a pixel early', zones, 'Math.ceil(right - slack)', 'Math.ceil(right - slack) - 1'),
];

/** Mutants of the shared code under both clips. */
const ofCut = [
  one('everything is inside', cut, 'if (isInside[i] === 0)', 'if (isInside[i] === undefined)'),
  one('what is inside is cut away', cut, 'if (isInside[i] === 0)', 'if (isInside[i] !== 0)'),
  one(
    'a declared nodata value marks nothing outside',
    cut,
    'return value === null ? [] : [{ band, value, isNew: false }];',
    'return value === null ? [] : [];',
  ),
  one('columns and rows swapped', cut, 'window.x, window.y, window.width', 'window.y, window.x, window.width'),
  one('a cancel is not looked at', cut, 'signal.throwIfAborted();\n    const height', 'const height'),
  one('no progress', cut, 'clipping.progress(', 'void ('),
  one('an area elsewhere is one', cut, 'if (kept === 0) throw outside();', ''),
  one(
    'several rasters are one',
    cut,
    'const source = scene.onlyRaster();\n  if (!source.srs',
    'const source = scene.datasets[0]!;\n  if (!source.srs',
  ),
  one('everything is read at once', cut, 'const stripPixels = 500_000;', 'const stripPixels = Infinity;'),
  one('an area of any size of number', 'src/steps/clip/outside.ts', '.min(-1e9).max(1e9)', ''),
];

/** The battery cannot find these in a clip to features: its features stay as small on a large raster, and its input is one raster. */
const notOfFeatures = ['a cancel is not looked at', 'everything is read at once', 'several rasters are one'];

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
  one('no data is not marked', raster, noNodata, ''),
];

/** Mutants of every step that passes its own raster to `writeCog`. */
const ofCogs = (): StepMutant[] => [
  one('lossy compression', raster, '`COMPRESS=${options.compression}`', "'COMPRESS=LERC', 'MAX_Z_ERROR=5'"),
  one('another reference system', raster, overviews, `${overviews}, 'TARGET_SRS=EPSG:3857'`),
  one('nothing is written', raster, '.createCopy(\n      path,', ".createCopy(\n      path + '.tif',"),
];

/** Mutants of a step's output declaration. */
const ofOwnDeclaration = (file: string, fileName: string, nodata?: string): StepMutant[] => [
  one(
    'a promise of another type',
    file,
    `dataType: 'Float32'${nodata === undefined ? '' : `, ${nodata}`} }`,
    `dataType: 'Int16'${nodata === undefined ? '' : `, ${nodata}`} }`,
  ),
  one('an output of another name', file, `fileName: '${fileName}'`, "fileName: 'other.tif', optional: true"),
];

const ndvi = 'src/steps/ndvi/index.ts';
const index = 'src/steps/spectral-index/index.ts';
const catalogue = 'src/steps/spectral-index/catalogue.ts';
const bandMath = 'src/steps/band-math/index.ts';
const expression = 'src/steps/band-math/expression.ts';
const cog = 'src/steps/cog/index.ts';
const cogWork = 'src/steps/cog/work.ts';
const hillshade = 'src/steps/hillshade/index.ts';
const slope = 'src/steps/slope/index.ts';
const panSharpen = 'src/steps/pan-sharpen/index.ts';
const upsampler = 'src/steps/pan-sharpen/upsampler.ts';
const scale = 'src/my-app/steps/scale/index.ts';
const python = 'src/steps/ndvi-python/ndvi.py';
const helper = 'src/steps/python/marketplace_step.py';

const change = 'src/steps/change/index.ts';
const cloudMask = 'src/steps/cloud-mask/index.ts';
const aspect = 'src/steps/aspect/index.ts';
const zonalWork = 'src/steps/zonal-statistics/work.ts';
const statistics = 'src/steps/zonal-statistics/statistics.ts';
const clipWork = 'src/steps/clip/work.ts';
const clipToFeaturesWork = 'src/steps/clip-to-features/work.ts';
const contours = 'src/steps/contours/index.ts';
const contoursWork = 'src/steps/contours/work.ts';
const mosaic = 'src/steps/mosaic/index.ts';
const mosaicWork = 'src/steps/mosaic/work.ts';
const polygonize = 'src/steps/polygonize/index.ts';
const polygonizeWork = 'src/steps/polygonize/work.ts';
const reproject = 'src/steps/reproject/index.ts';
const reprojectWork = 'src/steps/reproject/work.ts';
const harmonize = 'src/steps/harmonize/index.ts';
const harmonizeWork = 'src/steps/harmonize/work.ts';
const terrainIndex = 'src/steps/terrain-index/index.ts';
const colorRelief = 'src/steps/color-relief/index.ts';

/** The kit's steps that nobody has broken on purpose yet. */
export const notYetBroken: readonly string[] = [];

/** Mistakes by step. At least 20 of each. */
export const stepMutants: Readonly<Record<string, readonly StepMutant[]>> = {
  ndvi: [
    ...ofPixels,
    one('bands swapped', ndvi, '(a - b) / (a + b)', '(b - a) / (a + b)'),
    one('the sum is forgotten', ndvi, '(a - b) / (a + b)', 'a - b'),
    one('values are cut to 0 and 1', ndvi, '(a - b) / (a + b)', 'Math.max(0, (a - b) / (a + b))'),
    ...ofEachStrip,
    ...ofRasters,
    ...ofOwnDeclaration(ndvi, 'ndvi.tif'),
  ],
  'spectral-index': [
    ...ofPixels,
    ...ofEachStrip,
    ...ofRasters,
    ...ofOwnDeclaration(index, 'index.tif', 'nodata').slice(1),
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
    ...ofPixels,
    ...ofEachStrip,
    ...ofRasters,
    ...ofOwnDeclaration(bandMath, 'band-math.tif', 'nodata').slice(1),
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
    ...ofPixels,
    one('the factor is not looked at', scale, '      value * factor + offset,', '      value + offset,'),
    one('the offset is not looked at', scale, '      value * factor + offset,', '      value * factor,'),
    one('the offset comes first', scale, '      value * factor + offset,', '      (value + offset) * factor,'),
    ...ofEachStrip,
    ...ofRasters,
    ...ofOwnDeclaration(scale, 'scaled.tif'),
  ],
  cog: [
    one(
      'halves of the numbers',
      raster,
      "gdal.drivers.get('VRT').createCopy('', source)",
      "gdal.translate('/vsimem/halves.vrt', source, ['-of', 'VRT', '-scale', '0', '200', '0', '100'])",
    ),
    one(
      'nothing comes out',
      raster,
      "'NUM_THREADS=ALL_CPUS',",
      "'NUM_THREADS=ALL_CPUS', 'EXTENT=0,0,1,1', 'TARGET_SRS=EPSG:4326',",
    ),
    one(
      'the place is another',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:3857', 'RES=10'",
    ),
    one(
      'the second band only',
      cogWork,
      'view, outputPath',
      "(await import('gdal-async')).default.drivers.get('VRT').open((await import('gdal-async')).default.wrapVRT({ bands: [{ sources: [scene.onlyRaster().bands.get(2)] }] })), outputPath",
    ),
    one(
      'an estimate for a smaller output',
      cog,
      'work: () =>',
      'estimate: () => ({ outputBytes: 10, seconds: 1, memoryBytes: 1e6 }),\n  work: () =>',
    ),
    one('half a raster', raster, "'OVERVIEWS=IGNORE_EXISTING'", "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:32634'"),
    one(
      'nothing but the first band',
      cogWork,
      'view, outputPath',
      "(await import('gdal-async')).default.drivers.get('VRT').open((await import('gdal-async')).default.wrapVRT({ bands: [{ sources: [scene.onlyRaster().bands.get(1)] }] })), outputPath",
    ),
    one('a promise of other bands', cog, "bands: 'as-input'", "bands: [{ description: 'x', dataType: 'Byte' }]"),
    one('an output of another name', cog, "fileName: 'cog.tif'", "fileName: 'other.tif', optional: true"),
    one(
      'nothing is written',
      cogWork,
      'raster.writeCog(view, outputPath, parameters, writing);',
      'scene.onlyRaster();',
    ),
    one('it is written to another place', cogWork, 'outputPath, parameters', "outputPath + '.tif', parameters"),
    one('no progress', cogWork, 'share(0, 1)', '{ ...share(0, 1), progress: () => {} }'),
    one(
      'an end before the end',
      cogWork,
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
      cogWork,
      'raster.writeCog(view',
      "(await import('node:fs')).appendFileSync(scene.datasets[0]!.description, ' '); raster.writeCog(view",
    ),
    one('no bounds', cog, '.literal([256, 512, 1024])', '.number().transform((side) => side as 256)'),
    one(
      'everything is read at once',
      cogWork,
      'raster.writeCog(view',
      'const all = scene.onlyRaster(); all.bands.get(1).pixels.read(0, 0, all.rasterSize.x, all.rasterSize.y); raster.writeCog(view',
    ),
  ],
  hillshade: [
    ...ofPixels,
    ...ofGround,
    ...ofCogs().filter(({ name }) => name !== 'nothing is written'),
    one('no data is not marked', raster, noNodata, ''),
    ...ofOwnDeclaration(hillshade, 'hillshade.tif').slice(1),
    one(
      'a promise of another type',
      hillshade,
      "dataType: 'Byte', nodata: 0 }],\n    preview",
      "dataType: 'Float32', nodata: 0 }],\n    preview",
    ),
    one('an estimate for a larger output', hillshade, 'bytesPerPixel: 0.7', 'bytesPerPixel: 7'),
  ],
  slope: [
    ...ofPixels,
    ...ofGround,
    one('bytes', slope, "dataType: 'Float32'", "dataType: 'Byte'"),
    one('another nodata', slope, "dataType: 'Float32' }", "dataType: 'Float32', nodata: 0 }"),
    one('two bands promised', slope, 'bands: [{', "bands: [{ description: 'x', dataType: 'Float32' }, {"),
    one('an output of another name', slope, "fileName: 'slope.tif'", "fileName: 'other.tif', optional: true"),
    one('scale without a bound', slope, '.max(1_000_000)', ''),
  ],
  'ndvi-python': [
    one('bands swapped', python, '(bandA - bandB)', '(bandB - bandA)'),
    one('the sum is forgotten', python, '(bandA - bandB) / (bandA + bandB)', 'bandA - bandB'),
    one('the same band twice', python, '(bandA - bandB)', '(bandA - bandA)'),
    one(
      'values are cut to 0 and 1',
      python,
      '(bandA - bandB) / (bandA + bandB)',
      '((bandA - bandB) / (bandA + bandB)).clip(0, 1)',
    ),
    one('another name', python, 'description="normalized difference"', 'data_type="Int16"'),
    one('no data is a value', helper, 'if self.nodata is not None:', 'if self.nodata is not None and False:'),
    one(
      'grids are not compared',
      helper,
      'if not all(is_same_grid(first, one.dataset) for one in readers):',
      'if False:',
    ),
    one(
      'infinity is a value',
      helper,
      'gone = ~np.isfinite(values.astype(np.float32)) if data_type == "Float32" else ~np.isfinite(values)',
      'gone = np.isnan(values)',
    ),
    one(
      'no data comes out as 0',
      helper,
      'target.WriteArray(np.where(gone, 0 if mark is None else mark, values), 0, row)',
      'target.WriteArray(np.where(gone, 0, values), 0, row)',
    ),
    one(
      'every strip is the first',
      helper,
      'blocks = [_around(one, row, rows, reach) for one in readers]',
      'blocks = [_around(one, 0, rows, reach) for one in readers]',
    ),
    one(
      'the last strip is left out',
      helper,
      'for row in range(0, height, strip_rows):',
      'for row in range(0, max(1, height - strip_rows), strip_rows):',
    ),
    one(
      'the second band is read like the first',
      helper,
      'blocks = [_around(one, row, rows, reach) for one in readers]',
      'blocks = [readers[0].read(0, row, width, rows) for one in readers]',
    ),
    one('the place is lost', helper, 'made.SetGeoTransform(first.GetGeoTransform())', 'pass'),
    one('the reference system is lost', helper, 'made.SetProjection(first.GetProjection())', 'pass'),
    one('no data is not marked', helper, 'target.SetNoDataValue(mark)', 'pass'),
    one('what made it is not told', helper, 'made.SetMetadata(metadata)', 'pass'),
    one(
      'lossy compression',
      helper,
      '"COMPRESS=DEFLATE", "PREDICTOR=YES", "BLOCKSIZE=512"',
      '"COMPRESS=LERC", "MAX_Z_ERROR=5", "BLOCKSIZE=512"',
    ),
    one(
      'nothing is written',
      helper,
      '        job.output,\n        made,',
      '        job.output + ".tif",\n        made,',
    ),
    one(
      'noise is added',
      helper,
      'values = np.asarray(values, dtype=np.float64)',
      'values = np.asarray(values, dtype=np.float64) + np.random.rand(1)',
    ),
    one(
      'the band is not found',
      helper,
      'bands = [job.band(job.parameters[name], (job.pixels',
      "bands = [job.band('nir', (job.pixels",
    ),
    one('everything is read at once', helper, 'strip_rows=256, reach=0):', 'strip_rows=1000000, reach=0):'),
    one('no progress', helper, 'progress(0.6 * (row + rows) / height, "computing")', 'pass'),
  ],
  change: [
    ...ofPixels,
    one('always the difference', change, 'measures[measure]', "(void measure, measures['difference'])"),
    ...ofEachStrip,
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
  ],
  'cloud-mask': [
    // Both outputs report progress while they are compressed, which is enough for the check.
    ...ofPixels.filter(({ name }) => name !== 'no progress'),
    one('bits are numbered from 1', cloudMask, 'sum | (1 << bit)', 'sum | (1 << (bit - 1))'),
    one('the last bit alone', cloudMask, 'sum | (1 << bit)', '1 << bit'),
    one('what has no data is clear sky', cloudMask, 'Number.isNaN(value) ||', ''),
    ...ofEachStrip,
    ...ofRasters.filter(({ name }) => !name.startsWith('no data')),
    one(
      'a promise of another type',
      cloudMask,
      "bands: 'any',",
      "bands: [{ description: 'masked', dataType: 'Int16' }],",
    ),
    one('the first band for all', cloudMask, 'const values = inputs[k]!;', 'const values = inputs[k < 0 ? k : 0]!;'),
    one('the quality band is kept too', cloudMask, 'other !== quality && ', ''),
    one('what is marked is kept', cloudMask, '(value & bits) !== 0', '(value & bits) === 0'),
    one('every bit has to be set', cloudMask, '(value & bits) !== 0', '(value & bits) === bits'),
  ],
  aspect: [
    ...ofPixels,
    ...ofGround,
    ...ofOwnDeclaration(aspect, 'aspect.tif').slice(1),
    one('a promise of another type', aspect, "dataType: 'Float32' }]", "dataType: 'Byte' }]"),
    one('another nodata', aspect, "dataType: 'Float32' }", "dataType: 'Float32', nodata: 0 }"),
    one('lossy compression', raster, '`COMPRESS=${options.compression}`', "'COMPRESS=LERC', 'MAX_Z_ERROR=5'"),
    one(
      'another reference system',
      raster,
      "'OVERVIEWS=IGNORE_EXISTING'",
      "'OVERVIEWS=IGNORE_EXISTING', 'TARGET_SRS=EPSG:3857'",
    ),
  ],
  'zonal-statistics': [
    ...ofAreas,
    one('a cancel is not looked at', zonalWork, 'signal.throwIfAborted();', ''),
    one(
      'zones without a pixel are left out',
      zonalWork,
      'results.push(properties);',
      'if (ofBand.count > 0) results.push(properties);',
    ),
    one(
      'a run without any pixel is none',
      zonalWork,
      'results.every(({ count }) => count === 0)',
      'results.length === 0',
    ),
    one(
      'an unknown field is nobody',
      zonalWork,
      "parameters.label !== '' && !layer",
      "parameters.label === '' && !layer",
    ),
    one('zones are always numbered', zones, "label === '' ? undefined", 'label !== null ? undefined'),
    one('zones are numbered from 0', zones, 'String(i + 1)', 'String(i)'),
    one('the deviation of a sample', statistics, 'this.#squares) / this.count', 'this.#squares) / (this.count - 1)'),
    one('the variance', statistics, 'Math.sqrt(Math.max(0, this.#squares) / this.count)', 'this.#squares / this.count'),
    one('the mean of the last', statistics, 'this.#mean += (weight * step) / this.count;', 'this.#mean = value;'),
    one('the smallest is 0', statistics, '#min = Infinity', '#min = 0'),
    one('extremes swapped', statistics, 'min: of(this.#min),', 'min: of(this.#max),'),
    one('no values have a mean of 0', statistics, 'this.count === 0 ? null : value', 'value'),
    one('a percentile too high', statistics, 'share * (values.length - 1);', 'share * values.length;'),
    one('the last class is the majority', statistics, 'if (count > most)', 'if (count > 0)'),
    one(
      'each pixel counts whole',
      zonalWork,
      'statistics[k]!.add(strip[n]!, weights[n])',
      'statistics[k]!.add(strip[n]!)',
    ),
    one(
      'the first band for all',
      zonalWork,
      'parameters.allBands ? scene.bands.filter(isNotAlpha) :',
      'parameters.allBands ? [scene.bands[0]!] :',
    ),
    one('a formula in the table', statistics, '/^[=+\\-@\\t\\r]/.test(value)', 'false'),
  ],
  clip: [
    ...ofAreas,
    ...ofCogs(),
    ...ofCut,
    one(
      'the first polygon alone',
      clipWork,
      'polygonsOf(job.parameters.area)',
      'polygonsOf(job.parameters.area).slice(0, 1)',
    ),
  ],
  'clip-to-features': [
    ...ofAreas,
    ...ofCogs(),
    ...ofCut.filter(({ name }) => !notOfFeatures.includes(name)),
    one(
      'the field is not looked at',
      clipToFeaturesWork,
      "field === '' || label === value",
      "field === '' || label !== null",
    ),
    one('an unknown field is nobody', clipToFeaturesWork, "field !== '' && !known", "field === '' && !known"),
    one('a value that nobody has is all', clipToFeaturesWork, 'if (chosen.length === 0)', 'if (chosen.length < 0)'),
    one('overlaps are holes', cut, 'isInside[at + column]! |= ofOne[i]!', 'isInside[at + column]! ^= ofOne[i]!'),
  ],
  contours: [
    one('the interval is not looked at', contoursWork, 'interval: parameters.interval,', 'interval: 10,'),
    one('twice the interval', contoursWork, 'interval: parameters.interval,', 'interval: 2 * parameters.interval,'),
    one('fields swapped', contoursWork, 'idField: 0,\n      elevField: 1,', 'idField: 1,\n      elevField: 0,'),
    one('no heights', contoursWork, 'elevField: 1,', ''),
    one('no numbers', contoursWork, 'idField: 0,', ''),
    one('the first band always', contoursWork, 'scene.findBand(parameters.band)', 'scene.bands[0]!'),
    one('gaps are heights', contoursWork, '...(heights.noDataValue !== null && { nodata: heights.noDataValue }),', ''),
    one('heights are whole', contoursWork, "'elevation', gdal.OFTReal", "'elevation', gdal.OFTInteger"),
    one('another field', contoursWork, "new gdal.FieldDefn('elevation'", "new gdal.FieldDefn('height'"),
    one(
      'a field too many',
      contoursWork,
      "layer.fields.add(new gdal.FieldDefn('number', gdal.OFTInteger));",
      "layer.fields.add(new gdal.FieldDefn('number', gdal.OFTInteger)); made.layers.create('more', dataset.srs, gdal.wkbPoint);",
    ),
    one('no lines', contoursWork, 'src: heights,', 'src: heights, fixedLevels: [-1e6],'),
    one('one line', contoursWork, 'src: heights,', 'src: heights, fixedLevels: [25],'),
    one('no progress', contoursWork, 'generating.progress(fraction)', 'undefined'),
    one('an output of another name', contours, "fileName: 'contours.gpkg'", "fileName: 'other.gpkg', optional: true"),
    one('another promise', contours, "geometry: 'LineString'", "geometry: 'MultiLineString'"),
    one('a promise of another type', contours, "elevation: 'real'", "elevation: 'string'"),
    one(
      'nothing is written',
      contoursWork,
      "gdal.drivers.get('GPKG').create(outputs.contours)",
      "gdal.drivers.get('GPKG').create(outputs.contours + '.gpkg')",
    ),
    one(
      'the input is written to',
      contoursWork,
      'made.close();',
      "made.close(); (await import('node:fs')).appendFileSync(dataset.description, ' ');",
    ),
    one('an interval of 0', contours, '.min(0.001)\n      .max(10_000)', '.max(10_000)'),
    one('noise', contoursWork, 'made.close();', "made.close(); if (Math.random() < 0.5) throw new Error('noise');"),
    one(
      'pixels in place of the map',
      contoursWork,
      'src: heights,',
      "src: gdal.translate('/vsimem/placed.tif', dataset, ['-a_ullr', '0', '10', '10', '0']).bands.get(heights.id!),",
    ),
  ],
  mosaic: [
    ...ofWarps,
    ...ofCogs(),
    one('bands are not compared', mosaicWork, 'if (other)', 'if (!first)'),
    one(
      'names are not compared',
      mosaicWork,
      'typeOf(sceneBand.band) === typeOf(other.band) && isSameName',
      'typeOf(sceneBand.band) === typeOf(other.band)',
    ),
    one(
      'types are not compared',
      mosaicWork,
      'typeOf(sceneBand.band) === typeOf(other.band) && isSameName',
      'isSameName',
    ),
    one('a name like its file is none', mosaicWork, 'name === description || name !==', 'name !=='),
    one('the number of bands is not compared', mosaicWork, 'ofA.length === ofB.length &&', ''),
    one(
      'a pixel too many',
      mosaicWork,
      'Math.ceil(distance / size - 1e-6) * size',
      'Math.ceil(distance / size + 1e-6) * size',
    ),
    one('another promise', mosaic, "bands: 'as-input'", "bands: [{ description: 'x', dataType: 'Byte' }]"),
    one('an output of another name', mosaic, "fileName: 'mosaic.tif'", "fileName: 'other.tif', optional: true"),
  ],
  polygonize: [
    one('gaps are areas', polygonizeWork, 'mask![i] = isThere ? 1 : 0;', 'mask![i] = 1;'),
    one(
      'real numbers are rounded',
      polygonizeWork,
      'isThere && !Number.isInteger(value)',
      'isThere && Number.isNaN(value)',
    ),
    one(
      'a class too many',
      polygonizeWork,
      'classes![i] = isThere ? value : 0;',
      'classes![i] = isThere ? value + 1 : 0;',
    ),
    one('the choice of band is not looked at', polygonizeWork, 'scene.findBand(parameters.band)', 'scene.bands[0]!'),
    one('no values', polygonizeWork, 'pixValField: 0,', ''),
    one('corners connect', polygonizeWork, 'pixValField: 0,', 'pixValField: 0, connectedness: 8,'),
    one('the smallest is not looked at', polygonizeWork, 'if (geometry.getArea() < smallest) return;', ''),
    one('the smallest alone', polygonizeWork, 'geometry.getArea() < smallest', 'geometry.getArea() > smallest'),
    one(
      'a length for an area',
      polygonizeWork,
      'geometry.getArea() < smallest',
      '(geometry as unknown as { boundary(): { getLength(): number } }).boundary().getLength() < smallest',
    ),
    one(
      'values are lost where outlines change',
      polygonizeWork,
      "polygon.fields.set({ value: feature.fields.get('value') as number });",
      '',
    ),
    one('the tolerance is not looked at', polygonizeWork, 'tolerance === 0 && smallest === 0', 'smallest === 0'),
    one(
      'boxes in place of outlines',
      polygonizeWork,
      'geometry.simplifyPreserveTopology(tolerance)',
      '(geometry.convexHull() as typeof geometry)',
    ),
    one(
      'half the tolerance',
      polygonizeWork,
      'geometry.simplifyPreserveTopology(tolerance)',
      'geometry.simplifyPreserveTopology(tolerance / 2)',
    ),
    one(
      'buffers in place of outlines',
      polygonizeWork,
      'geometry.simplifyPreserveTopology(tolerance)',
      '(geometry.buffer(tolerance, 2) as typeof geometry)',
    ),
    one('a promise of another shape', polygonize, "geometry: 'Polygon',", "geometry: 'MultiPolygon',"),
    one('an output of another name', polygonize, "fileName: 'areas.gpkg'", "fileName: 'other.gpkg', optional: true"),
    one('no progress', polygonizeWork, 'finding.progress(fraction)', 'undefined'),
    one('nothing is written', polygonizeWork, 'isPlain ? outputs.areas : ', 'false ? outputs.areas : '),
    one(
      'the input is written to',
      polygonizeWork,
      'signal.throwIfAborted();\n    if',
      "(await import('node:fs')).appendFileSync(dataset.description, ' ');\n    if",
    ),
    one(
      'noise',
      polygonizeWork,
      'signal.throwIfAborted();\n    if',
      "if (Math.random() < 0.5) throw new Error('noise');\n    if",
    ),
    one('a tolerance of less than 0', polygonize, 'tolerance: z.number().min(0)', 'tolerance: z.number()'),
  ],
  reproject: [
    // A case of one raster cannot mark missing pixels in two ways, and only such rasters lose their scale.
    ...ofWarps.filter(
      ({ name }) => !['sources that differ are warped as they are', 'the scale is lost'].includes(name),
    ),
    one('always the nearest', reprojectWork, "['-r', parameters.resampling]", "['-r', 'near']"),
    ...ofCogs(),
    one(
      'the pixel size is not looked at',
      reprojectWork,
      'const size = pixelSize === undefined',
      'const size = pixelSize !== null',
    ),
    one('half the pixel size', reprojectWork, "['-tr', pixelSize, pixelSize]", "['-tr', pixelSize / 2, pixelSize / 2]"),
    one('pixels are not square', reprojectWork, "['-tr', pixelSize, pixelSize]", "['-tr', pixelSize, pixelSize / 2]"),
    one(
      'the first band alone',
      reprojectWork,
      'sourcesOf(inputs.input),',
      "sourcesOf(inputs.input, [gdal.translate('/vsimem/first.tif', source, ['-b', '1'])]).map((one) => ({ ...one, bands: one.bands.slice(0, 1) })),",
    ),
    one(
      'bands swapped',
      reprojectWork,
      'sourcesOf(inputs.input),',
      "sourcesOf(inputs.input, [gdal.translate('/vsimem/swapped.tif', source, source.bands.count() > 1 ? ['-b', '2', '-b', '1'] : [])]),",
    ),
    one('another promise', reproject, "bands: 'as-input'", "bands: [{ description: 'x', dataType: 'Byte' }]"),
    one('an output of another name', reproject, "fileName: 'reprojected.tif'", "fileName: 'other.tif', optional: true"),
    one('a pixel size of 0', reproject, '.min(1e-9)', ''),
  ],
  harmonize: [
    ...ofPixels.filter(({ name }) => name !== 'infinity is a value'),
    ...ofEachStrip,
    ...ofRasters,
    one('the coarsest for the finest', harmonizeWork, "=== 'finest' ? 0 : -1", "=== 'finest' ? -1 : 0"),
    one(
      'bands in their own order',
      harmonizeWork,
      'names.map((name) => scene.findBand(name))',
      'scene.bands.filter(({ names: own }) => own.some((name) => names.includes(name)))',
    ),
    one('nothing is moved', harmonizeWork, 'const isSame = isSameGrid(source, like);', 'const isSame = true;'),
    one('the method is not looked at', harmonizeWork, "isSame ? 'near' : method", "'near'"),
    one('the first band for each', harmonizeWork, 'out[i] = inputs[k]![i]!', 'out[i] = inputs[0]![i]!'),
    one('the grid of the first band', harmonizeWork, ': scene.findBand(parameters.grid);', ': chosen[0]!;'),
    one('another promise', harmonize, "bands: 'any'", "bands: [{ description: 'x', dataType: 'Byte' }]"),
  ],
  'terrain-index': [
    ...ofPixels,
    ...ofEachStrip,
    ...ofRasters,
    ...ofGround.slice(-2),
    ...ofOwnDeclaration(terrainIndex, 'terrain-index.tif'),
    one('a valley is a peak', terrainIndex, '(9 * heights[4]! - sum) / 8', '(sum - 9 * heights[4]!) / 8'),
    one('the mean of nine', terrainIndex, '(9 * heights[4]! - sum) / 8', '(9 * heights[4]! - sum) / 9'),
    one('the sum without its root', terrainIndex, 'return Math.sqrt(squares);', 'return squares;'),
    one('the highest less the pixel', terrainIndex, 'return high - low;', 'return high - heights[4]!;'),
    one(
      'ruggedness for roughness',
      terrainIndex,
      'indices[index]',
      "indices[index === 'roughness' ? 'ruggedness' : index]",
    ),
  ],
  'color-relief': [
    ...ofPixels,
    ...ofEachStrip,
    ...ofRasters,
    one('colours go on as a line', colorRelief, 'Math.max(0, (value - from.value)', '(0 + (value - from.value)'),
    one(
      'red is blue',
      colorRelief,
      'rgb: [hex >> 16, (hex >> 8) & 255, hex & 255]',
      'rgb: [hex & 255, (hex >> 8) & 255, hex >> 16]',
    ),
    one('steps are mixed', colorRelief, "between === 'steps' ||", ''),
    one('the order matters', colorRelief, 'stops.sort((a, b) => a.value - b.value);', ''),
    one('black is no data', colorRelief, 'Math.max(1, channel', 'Math.max(0, channel'),
    one(
      'two colours for a value',
      colorRelief,
      'return stops.some(({ value }, i) => value === stops[i - 1]?.value) ? null : stops;',
      'return stops;',
    ),
  ],
  'pan-sharpen': [
    ...ofEachStrip,
    ...ofRasters,
    one(
      'red and green swapped',
      panSharpen,
      'outRed![i] = isThere ? r * factor : nodata;\n    outGreen![i] = isThere ? g * factor',
      'outRed![i] = isThere ? g * factor : nodata;\n    outGreen![i] = isThere ? r * factor',
    ),
    one('blue is not sharpened', panSharpen, 'isThere ? b * factor', 'isThere ? b'),
    one(
      'the sum of the colours, not their mean',
      panSharpen,
      'weights.map((weight) => weight / sum)',
      'weights.map((weight) => weight + 0 * sum)',
    ),
    one(
      'weights are swapped',
      panSharpen,
      'weightsOf(parameters.redWeight, parameters.greenWeight',
      'weightsOf(parameters.greenWeight, parameters.redWeight',
    ),
    one('no weight at all is taken', panSharpen, 'if (sum === 0)', 'if (sum < 0)'),
    one(
      'the panchromatic band is another row',
      panSharpen,
      'sharpenRow(detail!, row * width',
      'sharpenRow(detail!, 0 * width',
    ),
    one('infinity is a value', panSharpen, 'Number.isFinite(factor)', '!Number.isNaN(factor)'),
    one(
      'another reference system is not looked at',
      panSharpen,
      'other && !fineSrs.isSame(other)',
      'other && fineSrs.isSame(other) === null',
    ),
    one('a turn is not looked at', panSharpen, 'if (!(turned < slack))', 'if (turned < 0)'),
    one(
      'elsewhere is not looked at',
      panSharpen,
      "if (!meets(place.columns, width, size.x) || !meets(place.rows, height, size.y)) fail('do not overlap');",
      '',
    ),
    one('colours on other grids are taken', panSharpen, 'raster.requireSameGrid(bands[0]!, other)', 'void other'),
    one(
      'a corner for a centre',
      upsampler,
      '(from + i + 0.5) * scale + offset - 0.5',
      '(from + i) * scale + offset - 0.5',
    ),
    one(
      'half a coarse pixel off',
      upsampler,
      '(from + i + 0.5) * scale + offset - 0.5',
      '(from + i + 0.5) * scale + offset',
    ),
    one(
      'the shift between the two is left out',
      panSharpen,
      'offset: column(f0 - r0, f3 - r3)',
      'offset: 0 * column(f0 - r0, f3 - r3)',
    ),
    one(
      'the nearest is always the upper left',
      upsampler,
      '(t < 0.5 ? [0, 1, 0, 0] : [0, 0, 1, 0])',
      '(t < 2 ? [0, 1, 0, 0] : [0, 0, 1, 0])',
    ),
    one('another cubic', upsampler, '((-0.5 * t + 1) * t - 0.5) * t,', '((-0.75 * t + 1.5) * t - 0.75) * t,'),
    one(
      'bilinear the wrong way round',
      upsampler,
      'bilinear: (t) => [0, 1 - t, t, 0]',
      'bilinear: (t) => [0, t, 1 - t, 0]',
    ),
    one(
      'gaps in a colour are values',
      upsampler,
      'this.#reader.read([0, from, width, rows], this.#window);',
      'this.#band.pixels.read(0, from, width, rows, this.#window);',
    ),
    one(
      'gaps grow',
      upsampler,
      '#ofThoseThere(left: number, column: number, upper: number, lower: number, down: number): number {',
      '#ofThoseThere(left: number, column: number, upper: number, lower: number, down: number): number {\n    if (left > -99) return NaN;',
    ),
    one(
      'gaps are filled from around',
      upsampler,
      'if (Number.isNaN(values[(u < 0.5 ? 0 : 2) + (t < 0.5 ? 0 : 1)]!)) return NaN;',
      '',
    ),
    one('pixels outside repeat the edge', upsampler, 'if (column < 0 || column > width)', 'if (column === Infinity)'),
    one('rows outside repeat the edge', upsampler, 'if (center < 0 || center > height)', 'if (center === Infinity)'),
    one(
      'a window that lacks its last rows',
      upsampler,
      'Math.max(above, below) + margin + 1',
      'Math.max(above, below) + 1',
    ),
    one('the window is that of the first strip', upsampler, 'this.#firstRow = from;', 'this.#firstRow = 0;'),
    one(
      'the wrong edge is repeated',
      upsampler,
      'line.fill(line[margin]!, 0, margin);',
      'line.fill(line[width]!, 0, margin);',
    ),
    one('lines of another row', panSharpen, 'upsampler.fill(y + row, lines[i]!)', 'upsampler.fill(y, lines[i]!)'),
  ],
};
