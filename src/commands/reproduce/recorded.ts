import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { readAppConfig, type AppConfig } from '../../app/config.ts';
import { openDatabase } from '../../app/database.ts';
import { provenanceTag } from '../../app/processing/make-provenance.ts';
import { readProvenance, type Provenance } from '../../app/processing/provenance.ts';
import { SqlRunStore } from '../../app/runs/sql-run-store.ts';
import { KitError } from '../../contract/index.ts';
import { runInChild, type Confinement } from '../../child/index.ts';
import { removeFolder } from '../../files/index.ts';
import { metadataJob } from '../../raster/index.ts';

/** Record in a file or a run of how it was made. */
export interface Recorded {
  readonly provenance: Provenance;
  /** The file that is held against what comes out; null where there are only digests. */
  readonly file: string | null;
  /** Digests of the outputs, by their file names, where the file is not here. */
  readonly outputs: readonly { readonly fileName: string; readonly sha256: string }[];
}

const runJson = z.object({
  provenance: z.unknown(),
  outputs: z.array(z.object({ fileName: z.string(), sha256: z.hash('sha256') })),
});
const maxJsonBytes = 16 * 1024 * 1024;

const changed = (what: string) =>
  new KitError(
    'no_provenance',
    `${what} does not say what made it, or what it says has changed since. Files of this kit's runs do (GeoTIFF, GeoPackage, GeoJSON), and the JSON of a run; of any other give the run's id`,
  );

/** Reads the record of an output, of the JSON of a run, or of a run in the app's database. Throws `KitError` if there is none. */
export async function readRecorded(
  what: string,
  path: string,
  confinement: Confinement,
  folder: string,
): Promise<Recorded> {
  if (!existsSync(path)) return ofRun(what);
  if (path.endsWith('.json') && (await stat(path)).size <= maxJsonBytes) {
    const known = ofJson(await readFile(path, 'utf8'));
    if (known) return known;
  }
  const workFolder = join(folder, 'metadata');
  const metadata = await runInChild<unknown>({
    module: metadataJob,
    input: null,
    files: [{ path, name: basename(path) }],
    workFolder,
    confinement,
  }).finally(() => removeFolder(workFolder));
  const text = z.record(z.string(), z.unknown()).parse(metadata)[provenanceTag];
  const provenance = typeof text === 'string' ? readProvenance(text) : null;
  if (!provenance) throw changed(path);
  return { provenance, file: path, outputs: [] };
}

/** `GET .../api/runs/{id}`. */
function ofJson(text: string): Recorded | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  const read = runJson.safeParse(json);
  if (!read.success) return null;
  const provenance = readProvenance(JSON.stringify(read.data.provenance));
  if (!provenance) throw changed('the run');
  return { provenance, file: null, outputs: read.data.outputs };
}

async function ofRun(id: string): Promise<Recorded> {
  const config = appConfig(id);
  const databaseUrl = config.databaseUrl?.reveal() ?? null;
  if (databaseUrl === null && !existsSync(join(config.dataDir, 'app.db')))
    throw new KitError(
      'bad_arguments',
      `there is no file ${id}, and no database of an app in ${config.dataDir} (DATA_DIR) to look for a run ${id} in`,
    );
  const database = await openDatabase({ dataDir: config.dataDir, databaseUrl });
  try {
    const run = await new SqlRunStore(database, Date.now).find(id);
    if (!run) throw new KitError('bad_arguments', `there is no file ${id}, and the app has no run ${id}`);
    const provenance = run.provenance && readProvenance(JSON.stringify(run.provenance));
    if (!provenance)
      throw new KitError('no_provenance', `run ${id} is ${run.state}, and does not say what made its output`);
    return {
      provenance,
      file: null,
      outputs: run.outputs.map(({ path, sha256 }) => ({ fileName: basename(path), sha256 })),
    };
  } finally {
    await database.destroy();
  }
}

function appConfig(id: string): AppConfig {
  try {
    return readAppConfig(process.env, () => {});
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    throw new KitError(
      'bad_arguments',
      `there is no file ${id}; to look for a run ${id}, the command needs the app's settings. ${error.message}`,
    );
  }
}
