import { randomUUID } from 'node:crypto';
import { basename, dirname, join, relative } from 'node:path';
import { ChildJobError, isJobFailure, runInChild, type Confinement } from '../../../child/index.ts';
import { messageOf, removeFolder } from '../../../files/index.ts';
import { bandNames, sensorOfFileNames, type Sensor } from '../../../raster/index.ts';
import type { FileFacts, InspectInput } from '../../inspect/facts.ts';
import { inspection, readFacts } from '../../inspect/read-facts.ts';
import type { Catalog } from '../catalog.ts';
import { gridOf } from '../raster-grid.ts';
import { bandProperties, bandsOfFile, bandsOfScene } from '../band-properties.ts';
import { itemProperties } from '../item-properties.ts';
import type { NewItem, SceneFile } from '../items.ts';
import { ensureCollection, type ImportProgress, type ImportResult } from './import-items.ts';
import { groupScenes, type SceneGroup } from './scene-groups.ts';
import { noMetadata, sceneMetadata, type SceneMetadata } from './scene-metadata.ts';

const metadataJob = new URL('./scene-metadata-job.ts', import.meta.url);
const metadataMs = 10_000;
/** Files that may be about one scene. */
const maxCandidates = 5;

/** Work folder and confinement for the inspection of rasters. */
export interface ImportPlace {
  readonly workFolder: string;
  readonly confinement: Confinement;
}

interface PlacedFacts extends FileFacts {
  readonly footprint: NonNullable<FileFacts['footprint']>;
  readonly raster: NonNullable<FileFacts['raster']>;
}

/** A raster that can be read and says where it lies. */
interface Placed {
  readonly path: string;
  readonly facts: PlacedFacts;
}

/** Imports rasters where they lie, their data and previews read from there: the bands of a scene as one item, any other each as its own. The collection is named after their folder. */
export async function importRasters(
  catalog: Catalog,
  paths: readonly string[],
  metadataPaths: readonly string[],
  root: string,
  place: ImportPlace,
  progress: ImportProgress,
  nowMs: number,
): Promise<ImportResult> {
  const collectionId = collectionOfFolder(root);
  const nameOf = (path: string) => relative(root, path) || basename(path);
  let [imported, refused, done] = [0, 0, 0];

  async function placed(path: string): Promise<Placed | null> {
    try {
      const facts = await inspect(path, place);
      const { raster, footprint } = facts;
      if (!raster) throw new ChildJobError('no_raster', 'is no raster');
      if (footprint === null)
        throw new ChildJobError('no_footprint', 'says no place: it has no reference system or no transformation');
      return { path, facts: { ...facts, raster, footprint } };
    } catch (error) {
      if (!isJobFailure(error)) throw error;
      refused += 1;
      progress.onRefused(nameOf(path), error.message);
      return null;
    } finally {
      progress.onProgress((done += 1), paths.length);
    }
  }
  /** Read once, whichever scenes it lies beside. */
  const known = new Map<string, Promise<SceneMetadata | null>>();
  async function metadataFrom(candidates: readonly string[]): Promise<SceneMetadata> {
    for (const path of candidates.slice(0, maxCandidates)) {
      const reading = known.get(path) ?? readMetadata(path, place);
      known.set(path, reading);
      const read = await reading;
      if (read) return read;
    }
    return noMetadata;
  }
  function put(item: Omit<NewItem, 'collectionId'>): void {
    ensureCollection(catalog, collectionId, nowMs);
    catalog.items.put({ ...item, collectionId });
    imported += 1;
  }

  const { scenes, single } = groupScenes(paths);
  const taken = new Set<string>();
  for (const path of single) {
    const found = await placed(path);
    if (!found) continue;
    const name = slug(nameOf(path).replace(/\.[^.]+$/, ''));
    const isFree = (id: string) => !taken.has(id) && isOwn(catalog, collectionId, id, [path]);
    let id = name;
    for (let n = 2; !isFree(id); n++) id = `${name}-${n}`;
    taken.add(id);
    put(itemOfRaster(found, id, nowMs));
  }
  const found: SceneOfGrid[] = [];
  for (const scene of scenes) {
    const bands: Placed[] = [];
    for (const path of scene.paths) bands.push(...[await placed(path)].filter((band) => band !== null));
    const isAlone =
      scenes.filter(({ paths: [path = ''] }) => dirname(path) === dirname(scene.paths[0] ?? '')).length === 1;
    const metadata = await metadataFrom(metadataOf(scene, metadataPaths, root, isAlone));
    const sensor = sensorOf(metadata, scene);
    const folder = relative(root, dirname(scene.paths[0] ?? ''));
    found.push(
      ...byGrid(bands).map((ofGrid) => ({
        stem: scene.stem,
        folder,
        metadata,
        facts: ofGrid[0].facts,
        files: filesOf(ofGrid, sensor, metadata),
      })),
    );
  }
  // The one that shows colours, in the finest resolution, has the scene's own name; the others say their resolution with it.
  for (const scene of found.toSorted((a, b) => Number(hasRed(b)) - Number(hasRed(a)) || pixelsOf(b) - pixelsOf(a))) {
    const paths = scene.files.map(({ path }) => path);
    const item = itemOfScene(scene, (id) => !taken.has(id) && isOwn(catalog, collectionId, id, paths), nowMs);
    taken.add(item.id);
    put(item);
  }
  return { imported, refused };
}

/** The collection that a folder's rasters go into. */
export const collectionOfFolder = (path: string): string => slug(basename(path));

function itemOfRaster({ path, facts }: Placed, id: string, nowMs: number): Omit<NewItem, 'collectionId'> {
  return {
    id,
    title: basename(path),
    datetimeMs: facts.acquiredAt === null ? nowMs : Date.parse(facts.acquiredAt),
    footprint: facts.footprint,
    properties: itemProperties({
      name: basename(path),
      description: `${facts.raster.width} x ${facts.raster.height} pixels, ${facts.raster.bands.length} band(s)`,
      layerType: 'RASTER',
      ingestedAtMs: nowMs,
      provider: 'import',
      sourceType: 'UNKNOWN',
      more: {
        ...bandProperties(bandsOfFile(basename(path), facts.raster), [facts.raster.height, facts.raster.width]),
        'import:files': [basename(path)],
      },
    }),
    source: { kind: 'path', path, isRaster: true, grid: gridOf(facts) },
  };
}

/** The bands of a scene that share their pixels. */
interface SceneOfGrid {
  readonly stem: string;
  /** Below the root; empty for the root itself. */
  readonly folder: string;
  readonly metadata: SceneMetadata;
  /** Facts of the first band. */
  readonly facts: PlacedFacts;
  readonly files: readonly SceneFile[];
}

const hasRed = ({ files }: SceneOfGrid) => files.some(({ name }) => name === 'red');
const pixelsOf = ({ facts }: SceneOfGrid) => facts.raster.width * facts.raster.height;

/** Prefix of USGS's own file names, for a sensor that these do not tell: whoever unpacks the files names their bands by it. */
function toldSensor(fileNames: readonly string[], sensor: Sensor, { platform }: SceneMetadata): string {
  if (sensorOfFileNames(fileNames) === sensor) return '';
  const satellite = /^landsat-(\d)$/.exec(platform ?? '')?.[1];
  return satellite === undefined
    ? ''
    : `${{ 'landsat-mss': 'LM', 'landsat-4-7': satellite === '7' ? 'LE' : 'LT', 'landsat-8-9': 'LC', 'sentinel-2': '', other: '' }[sensor]}0${satellite}_`;
}

function filesOf(bands: readonly Placed[], sensor: Sensor, metadata: SceneMetadata): SceneFile[] {
  const fileNames = bands.map(({ path }) => basename(path));
  const names = bandNames(fileNames, sensor);
  const prefix = toldSensor(fileNames, sensor, metadata);
  return bands.map(({ path }, i) => {
    const fileName = basename(path);
    const [band = fileName, name = band] = names[i] ?? [];
    return { path, fileName: prefix + fileName, band, name };
  });
}

function itemOfScene(
  { stem, folder, metadata, facts, files }: SceneOfGrid,
  isFree: (id: string) => boolean,
  nowMs: number,
): Omit<NewItem, 'collectionId'> {
  const metres = pixelMetres(facts);
  const atMs = metadata.acquiredAtMs ?? (facts.acquiredAt === null ? nowMs : Date.parse(facts.acquiredAt));
  const own = metadata.id ?? (stem || basename(folder) || 'scene');
  const idOf = (title: string) => slug(metadata.id === null && folder !== '' ? join(folder, title) : title);
  const ofResolution = metres === null ? own : `${own}_${metres}m`;
  let title = isFree(idOf(own)) ? own : ofResolution;
  // The same number at every import, so that an item replaces itself.
  for (let n = 2; !isFree(idOf(title)); n++) title = `${ofResolution}_${n}`;
  const satellite = metadata.platform === null ? own : readable(metadata.platform);
  return {
    id: idOf(title),
    title,
    datetimeMs: atMs,
    footprint: facts.footprint,
    properties: itemProperties({
      name: [
        satellite,
        ...(metadata.acquiredAtMs === null ? [] : [new Date(atMs).toISOString().slice(0, 10)]),
        ...(title === own || metres === null ? [] : [`${metres} m`]),
      ].join(', '),
      description: `${files.length} bands: ${files.map(({ band, name }) => (name === band ? band : `${name} (${band})`)).join(', ')}; ${facts.raster.width} x ${facts.raster.height} pixels${metres === null ? '' : ` of ${metres} m`}`,
      layerType: 'RASTER',
      ingestedAtMs: nowMs,
      provider: metadata.provider ?? 'import',
      sourceType: 'MULTISPECTRAL',
      more: {
        ...(metadata.platform === null ? {} : { platform: metadata.platform }),
        ...(metadata.instruments.length === 0 ? {} : { instruments: metadata.instruments }),
        ...(metadata.cloudCover === null ? {} : { 'eo:cloud_cover': metadata.cloudCover }),
        ...(metadata.sunAzimuth === null ? {} : { 'view:sun_azimuth': metadata.sunAzimuth }),
        ...(metadata.sunElevation === null ? {} : { 'view:sun_elevation': metadata.sunElevation }),
        ...(metres === null ? {} : { gsd: metres }),
        ...bandProperties(bandsOfScene(files, metadata), [facts.raster.height, facts.raster.width]),
        'import:files': files.map(({ path }) => basename(path)),
      },
    }),
    source: { kind: 'scene', files, grid: gridOf(facts) },
  };
}

/** `landsat-8` for people. */
const readable = (platform: string) =>
  platform
    .replace(/^./, (first) => first.toUpperCase())
    .replace(/-(\d)/, ' $1')
    .replace(/^(Sentinel) /, '$1-')
    .replace(/\d[a-d]$/, (letter) => letter.toUpperCase());

function sensorOf({ platform, instruments }: SceneMetadata, { paths }: SceneGroup): Sensor {
  const landsat = /^landsat-(\d)$/.exec(platform ?? '')?.[1];
  if (landsat !== undefined && (Number(landsat) < 4 || instruments.includes('mss'))) return 'landsat-mss';
  if (landsat !== undefined) return Number(landsat) >= 8 ? 'landsat-8-9' : 'landsat-4-7';
  return platform?.startsWith('sentinel-2') ? 'sentinel-2' : sensorOfFileNames(paths.map((path) => basename(path)));
}

/** Rasters with the same pixels. */
function byGrid(bands: readonly Placed[]): [Placed, ...Placed[]][] {
  const groups = new Map<string, [Placed, ...Placed[]]>();
  for (const band of bands) {
    const { width, height, geoTransform, crs } = band.facts.raster;
    const key = JSON.stringify([width, height, geoTransform?.map((value) => value.toFixed(6)), crs]);
    const group = groups.get(key);
    if (group) group.push(band);
    else groups.set(key, [band]);
  }
  return [...groups.values()];
}

/** Returns the pixel size of a projected raster; null for one in degrees. */
function pixelMetres({ raster }: FileFacts): number | null {
  const side = Math.abs(raster?.geoTransform?.[1] ?? 0);
  return raster?.crs?.startsWith('PROJCS') && side > 0 ? Number(side.toPrecision(6)) : null;
}

/**
 * Returns metadata files of a scene from its folder and those above: Sentinel-2's, and files named like the scene.
 * A scene alone in its folder may also use the only metadata file there.
 */
function metadataOf(
  { stem, paths: [path = ''] }: SceneGroup,
  metadataPaths: readonly string[],
  root: string,
  isAlone: boolean,
): readonly string[] {
  const fits = (name: string) => {
    if (/^MTD/i.test(name)) return true;
    const own = name.replace(/[^A-Za-z0-9]*(MTL)?\.(txt|json)$/i, '').toLowerCase();
    const scene = stem.toLowerCase();
    // The scene's may say more, as `..._T1_SR` of `..._T1_MTL.txt`; a name that says nothing is of whatever lies beside it.
    return own === '' || (scene !== '' && (scene.startsWith(own) || own.startsWith(scene)));
  };
  const found: string[] = [];
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const here = metadataPaths.filter((metadataPath) => dirname(metadataPath) === folder);
    const named = here.filter((file) => fits(basename(file)));
    found.push(...(named.length === 0 && isAlone && folder === dirname(path) && here.length === 1 ? here : named));
    if (folder === root || folder === dirname(folder) || !folder.startsWith(root)) break;
  }
  // Before JSON, which may be anything.
  return found.toSorted((a, b) => Number(/\.json$/i.test(a)) - Number(/\.json$/i.test(b)));
}

/** Null where the file is no metadata after all, however it fails to be. */
async function readMetadata(path: string, place: ImportPlace): Promise<SceneMetadata | null> {
  try {
    const answer = await inOwnFolder(place, (workFolder) =>
      runInChild<unknown>({
        module: metadataJob,
        input: null,
        files: [{ path, name: 'metadata' }],
        workFolder,
        confinement: place.confinement,
        limits: { timeoutMs: metadataMs },
      }),
    );
    return sceneMetadata.nullable().catch(null).parse(answer);
  } catch (error) {
    if (!isJobFailure(error)) throw error;
    return null;
  }
}

function inspect(path: string, place: ImportPlace): Promise<FileFacts> {
  const input: InspectInput = { sourceType: 'MULTISPECTRAL', buildOverviews: false };
  return inOwnFolder(place, async (workFolder) => {
    const answer = await runInChild<unknown>({
      ...inspection,
      input,
      files: [{ path, name: basename(path) }],
      workFolder,
      confinement: place.confinement,
    });
    try {
      return readFacts(answer);
    } catch (cause) {
      throw new ChildJobError('job_crashed', messageOf(cause));
    }
  });
}

/** Files of different folders may have the same name. */
async function inOwnFolder<T>({ workFolder }: ImportPlace, work: (folder: string) => Promise<T>): Promise<T> {
  const own = join(workFolder, randomUUID());
  try {
    return await work(own);
  } finally {
    await removeFolder(own);
  }
}

/** True if a collection has no item of this id, or the one that an earlier import made of one of these files. */
function isOwn({ items }: Catalog, collectionId: string, id: string, paths: readonly string[]): boolean {
  const item = items.find(collectionId, id);
  if (item?.id !== id) return true;
  const { source } = item;
  if (source.kind === 'path') return paths.includes(source.path);
  return source.kind === 'scene' && source.files.some((file) => paths.includes(file.path));
}

/** Letters and digits of any script, and hyphens between them. */
function slug(name: string): string {
  return (
    name
      .normalize('NFC')
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}]+/gu, '-')
      .replace(/^-+|-+$/g, '') || 'imported'
  );
}
