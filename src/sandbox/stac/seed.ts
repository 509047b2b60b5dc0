import { runInChild, type Confinement } from '../../raster/index.ts';
import type { Footprint } from '../../raster/footprint.ts';
import type { SyntheticScene } from '../../raster/synthetic-scene.ts';
import type { Catalog } from './catalog.ts';
import { rootCatalogId } from './collections.ts';
import type { ProjectedSquare } from './footprints-job.ts';
import { itemProperties } from './item-properties.ts';

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
    more: (n) => ({ 'view:off_nadir': (n * 7) % 5, 'view:sun_azimuth': 120 + (n % 6) * 4, 'view:sun_elevation': 45 + (n % 6) * 3 }),
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

/** Fills an empty catalog with demo collections: the same on every machine. Their pixels are made when somebody asks for them. */
export async function seedDemo(catalog: Catalog, place: { readonly workFolder: string; readonly confinement: Confinement }): Promise<void> {
  const scenes = series.flatMap(scenesOf);
  const squares: ProjectedSquare[] = scenes.map(({ scene }) => ({ epsg: scene.place.epsg, origin: scene.place.origin, side: scenePixels * pixelSize }));
  const footprints = await runInChild<(Footprint | null)[]>({ module: new URL('./footprints-job.ts', import.meta.url), input: squares, ...place });
  catalog.items.inTransaction(() => {
    for (const one of catalogs) catalog.collections.putCatalog({ ...one, parentId: rootCatalogId });
    for (const one of series) catalog.collections.put({ ...one, id: one.collectionId, license: 'proprietary', createdAtMs: firstDay });
    scenes.forEach(({ of, n, column, atMs, scene }, i) => {
      const footprint = footprints[i];
      if (!footprint) throw new Error(`a demo scene lies nowhere: ${of.collectionId} ${n}`);
      const source = `${of.sourceType}_${new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '')}_${String(column + 1).padStart(2, '0')}`;
      catalog.items.put({
        id: `${of.collectionId}-${String(n + 1).padStart(3, '0')}`,
        collectionId: of.collectionId,
        title: source,
        datetimeMs: atMs,
        footprint,
        properties: itemProperties({
          name: `${of.title} ${n + 1}`,
          description: of.description,
          layerType: 'RASTER',
          ingestedAtMs: atMs + day / 4,
          provider: 'Sandbox demo',
          sourceType: of.sourceType,
          more: of.more(n),
        }),
        source: { kind: 'synthetic', scene, grid: { epsg: scene.place.epsg, shape: [scenePixels, scenePixels], transform: [pixelSize, 0, scene.place.origin[0], 0, -pixelSize, scene.place.origin[1]] } },
      });
    });
  });
  catalog.reload();
}

function scenesOf(of: Series) {
  return Array.from({ length: of.columns * of.dates }, (_, n) => {
    const column = n % of.columns;
    // Neighbours overlap a little, as scenes of one orbit do.
    const origin: [number, number] = [of.origin[0] + column * scenePixels * pixelSize * 0.95, of.origin[1] - (column % 3) * 2_000];
    const atMs = firstDay + Math.floor(n / of.columns) * of.everyDays * day + column * 7_000;
    return { of, n, column, atMs, scene: { kind: of.kind, size: scenePixels, place: { epsg: of.epsg, origin }, shift: 1_000 + column * 480 } };
  });
}
