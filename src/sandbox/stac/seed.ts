import { readFileSync } from 'node:fs';
import { kitFolder, ownJson } from '../../files/index.ts';
import type { Footprint } from '../../raster/footprint.ts';
import { syntheticBands } from '../../raster/synthetic-bands.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import type { Catalog } from './catalog.ts';
import { realKeyword, rootCatalogId } from './collections.ts';
import { bandProperties, namedBands } from './band-properties.ts';
import { itemProperties } from './item-properties.ts';
import type { RasterGrid } from './items.ts';

const day = 86_400_000;
const firstDay = Date.UTC(2024, 2, 1, 10, 12, 33, 417);
const scenePixels = 512;
const pixelSize = 30;

const catalogs = [
  { id: 'earth-observation', title: 'Earth observation', description: 'Optical and radar scenes.' },
  { id: 'terrain', title: 'Terrain', description: 'Elevation models.' },
];

interface Series {
  readonly collectionId: string;
  readonly catalogId: string;
  readonly title: string;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly kind: SyntheticScene['kind'];
  readonly sourceType: string;
  readonly epsg: number;
  readonly origin: readonly [number, number];
  /** Scenes side by side, times dates. */
  readonly columns: number;
  readonly dates: number;
  readonly everyDays: number;
  readonly more: (n: number) => Record<string, unknown>;
}

const series: readonly Series[] = [
  {
    collectionId: 'coastal-optical',
    catalogId: 'earth-observation',
    title: 'Coastal optical',
    description: 'Multispectral scenes of a coast, 30 m: blue, green, red, near and short-wave infrared. Synthetic.',
    keywords: ['optical', 'multispectral', 'coast'],
    kind: 'multispectral',
    sourceType: 'MULTISPECTRAL',
    epsg: 32616,
    origin: [380_000, 3_420_000],
    columns: 4,
    dates: 6,
    everyDays: 16,
    more: (n) => ({
      'view:off_nadir': (n * 7) % 5,
      'view:sun_azimuth': 120 + (n % 6) * 4,
      'view:sun_elevation': 45 + (n % 6) * 3,
    }),
  },
  {
    collectionId: 'harbour-radar',
    catalogId: 'earth-observation',
    title: 'Harbour radar',
    description: 'Radar backscatter of a harbour, 30 m, VV. Synthetic.',
    keywords: ['radar', 'sar'],
    kind: 'radar',
    sourceType: 'SAR',
    epsg: 32632,
    origin: [560_000, 5_950_000],
    columns: 2,
    dates: 8,
    everyDays: 12,
    more: (n) => ({
      'view:off_nadir': 34,
      'view:incidence_angle': 38.5,
      'sar:instrument_mode': 'IW',
      'sar:frequency_band': 'C',
      'sar:polarizations': ['VV'],
      'sar:product_type': 'GRD',
      'sar:observation_direction': n % 2 === 0 ? 'right' : 'left',
    }),
  },
  {
    collectionId: 'alpine-elevation',
    catalogId: 'terrain',
    title: 'Alpine elevation',
    description: 'Heights above the ellipsoid, 30 m. Synthetic.',
    keywords: ['elevation', 'terrain'],
    kind: 'elevation',
    sourceType: 'HEIGHTMAP',
    epsg: 32633,
    origin: [320_000, 5_230_000],
    columns: 12,
    dates: 1,
    everyDays: 1,
    more: () => ({}),
  },
];

/** A real raster of `src/sandbox/scenes`. */
interface RealScene {
  readonly id: string;
  readonly fileName: string;
  readonly title: string;
  readonly atMs: number;
  readonly name: string;
  readonly description: string;
  readonly provider: string;
  readonly sourceType: string;
  readonly grid: RasterGrid;
  readonly bands: readonly string[];
  readonly collection: {
    readonly id: string;
    readonly catalogId: string;
    readonly title: string;
    readonly description: string;
    readonly keywords: readonly string[];
  };
  readonly more: Record<string, unknown>;
}

const realScenes: readonly RealScene[] = [
  {
    id: 'olinda-landsat7',
    fileName: 'olinda-landsat7.tif',
    title: 'olinda-landsat7',
    atMs: Date.UTC(2002, 6, 1, 12, 30),
    name: 'Olinda, Landsat 7',
    description:
      'Coast, city and forest at Olinda, Brazil: blue, green, red, near and short-wave infrared, 28.5 m. The day is not recorded: the date stands for the early 2000s. Courtesy of the U.S. Geological Survey; public domain.',
    provider: 'U.S. Geological Survey',
    sourceType: 'MULTISPECTRAL',
    grid: {
      epsg: 31985,
      shape: [352, 349],
      transform: [28.49999999927454, 0, 288776.25000080315, 0, -28.49999999927454, 9120760.750028737],
    },
    bands: ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'],
    collection: {
      id: 'olinda-coast',
      catalogId: 'earth-observation',
      title: 'Olinda coast',
      description: 'A real scene of Landsat 7 at Olinda, Brazil.',
      keywords: [realKeyword, 'optical', 'multispectral', 'landsat', 'coast'],
    },
    more: { platform: 'landsat-7', instruments: ['etm'], gsd: 28.5 },
  },
  {
    id: 'jacksboro-dem',
    fileName: 'jacksboro-dem.tif',
    title: 'jacksboro-dem',
    atMs: Date.UTC(2000, 1, 16),
    name: 'Jacksboro fault, elevation',
    description:
      'Metres above the sea at the Jacksboro fault, Tennessee, 3 arc seconds. From the shuttle radar mission of February 2000, NASA; public domain.',
    provider: 'NASA',
    sourceType: 'HEIGHTMAP',
    grid: { epsg: 4326, shape: [344, 403], transform: [1 / 1200, 0, -84.41375, 0, -1 / 1200, 36.44625] },
    bands: ['elevation'],
    collection: {
      id: 'jacksboro-fault',
      catalogId: 'terrain',
      title: 'Jacksboro fault',
      description: 'Real elevation of the shuttle radar mission in Tennessee.',
      keywords: [realKeyword, 'elevation', 'terrain', 'srtm'],
    },
    more: { platform: 'sts-99' },
  },
];

/** North-western corner, width and height in the units of the reference system. */
export interface ProjectedPlace {
  readonly epsg: number;
  readonly origin: readonly [number, number];
  readonly size: readonly [number, number];
}

/** Places of the demo's scenes by their id. */
export function demoPlaces(): ReadonlyMap<string, ProjectedPlace> {
  const side = scenePixels * pixelSize;
  const synthetic = series
    .flatMap(scenesOf)
    .map(({ of, n, scene }): [string, ProjectedPlace] => [
      idOf(of, n),
      { epsg: scene.place.epsg, origin: scene.place.origin, size: [side, side] },
    ]);
  const real = realScenes.map(({ id, grid: { epsg, shape, transform } }): [string, ProjectedPlace] => {
    const [rows, columns] = shape;
    const [width = 0, , west = 0, , height = 0, north = 0] = transform;
    return [id, { epsg, origin: [west, north], size: [columns * width, -rows * height] }];
  });
  return new Map([...synthetic, ...real]);
}

/** Footprints of the demo's scenes by their id: made by GDAL once, so that a sandbox has them on a machine without GDAL. */
const footprintsFile = kitFolder('src/sandbox/scenes/footprints.json');

/** Fills an empty catalog with demo collections: the same on every machine. Their pixels are made when somebody asks for them. */
export function seedDemo(catalog: Catalog): void {
  const scenes = series.flatMap(scenesOf);
  const footprints = ownJson<Record<string, Footprint>>(readFileSync(footprintsFile, 'utf8'));
  catalog.items.inTransaction(() => {
    for (const catalogEntry of catalogs) catalog.collections.putCatalog({ ...catalogEntry, parentId: rootCatalogId });
    for (const collection of series)
      catalog.collections.put({
        ...collection,
        id: collection.collectionId,
        license: 'proprietary',
        createdAtMs: firstDay,
      });
    realScenes.forEach(
      ({ collection, id, fileName, title, atMs, name, description, provider, sourceType, grid, bands, more }) => {
        catalog.collections.put({ ...collection, license: 'PDDL-1.0', createdAtMs: firstDay });
        const properties = itemProperties({
          name,
          description,
          layerType: 'RASTER',
          ingestedAtMs: firstDay,
          provider,
          sourceType,
          more: { ...bandProperties(namedBands(bands), grid.shape), ...more },
        });
        catalog.items.put({
          id,
          collectionId: collection.id,
          title,
          datetimeMs: atMs,
          footprint: footprintOfScene(id),
          properties,
          source: { kind: 'shipped', fileName, grid },
        });
      },
    );
    scenes.forEach(({ of, n, column, atMs, scene }) => {
      const source = `${of.sourceType}_${new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '')}_${String(column + 1).padStart(2, '0')}`;
      catalog.items.put({
        id: idOf(of, n),
        collectionId: of.collectionId,
        title: source,
        datetimeMs: atMs,
        footprint: footprintOfScene(idOf(of, n)),
        properties: itemProperties({
          name: `${of.title} ${n + 1}`,
          description: of.description,
          layerType: 'RASTER',
          ingestedAtMs: atMs + day / 4,
          provider: 'Sandbox demo',
          sourceType: of.sourceType,
          more: { ...bandProperties(namedBands(syntheticBands[of.kind]), [scenePixels, scenePixels]), ...of.more(n) },
        }),
        source: {
          kind: 'synthetic',
          scene,
          grid: {
            epsg: scene.place.epsg,
            shape: [scenePixels, scenePixels],
            transform: [pixelSize, 0, scene.place.origin[0], 0, -pixelSize, scene.place.origin[1]],
          },
        },
      });
    });
  });

  function footprintOfScene(id: string): Footprint {
    const footprint = footprints[id];
    if (!footprint) throw new Error(`the demo scene ${id} has no footprint in ${footprintsFile}`);
    return footprint;
  }
}

const idOf = ({ collectionId }: Series, n: number) => `${collectionId}-${String(n + 1).padStart(3, '0')}`;

function scenesOf(of: Series) {
  return Array.from({ length: of.columns * of.dates }, (_, n) => {
    const column = n % of.columns;
    // Neighbours overlap a little, as scenes of one orbit do.
    const origin: [number, number] = [
      of.origin[0] + column * scenePixels * pixelSize * 0.95,
      of.origin[1] - (column % 3) * 2_000,
    ];
    const atMs = firstDay + Math.floor(n / of.columns) * of.everyDays * day + column * 7_000;
    return {
      of,
      n,
      column,
      atMs,
      scene: { kind: of.kind, size: scenePixels, place: { epsg: of.epsg, origin }, shift: 1_000 + column * 480 },
    };
  });
}
