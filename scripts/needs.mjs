// Programs that the kit's commands and tests need beside npm's packages: the table is src/needs.json. Plain JavaScript: the
// set-up runs on the machine's own Node.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kit = dirname(dirname(fileURLToPath(import.meta.url)));
const written = join(kit, 'src', 'needs.json');

/** Same value as in `src/child/bubblewrap.ts`. */
const pathOfSteps = '/usr/local/bin:/usr/bin:/bin';

export const needs = JSON.parse(readFileSync(existsSync(written) ? written : join(kit, 'dist', 'needs.json'), 'utf8'));

/** Drivers that a GDAL binding must have. `src/child/drivers.ts` says for which files. */
export const neededDrivers = [
  ...['GTiff', 'JP2OpenJPEG', 'PNG', 'JPEG', 'netCDF', 'AAIGrid', 'DTED', 'SRTMHGT', 'NITF', 'HFA', 'ENVI'],
  ...['GeoJSON', 'GPKG', 'FlatGeobuf', 'KML', 'GML', 'CSV', 'ESRI Shapefile', 'COG', 'MEM', 'VRT'],
];

/** Path of the first of these programs on PATH or below `folders`, where `*` stands for any one name; null if none is there. */
export function findProgram(names, folders) {
  const places = [...(process.env.PATH ?? '').split(delimiter), ...expand(folders)].filter((place) => place !== '');
  for (const name of names) for (const place of places) if (existsSync(join(place, name))) return join(place, name);
  return null;
}

function expand(pattern) {
  if (pattern === undefined) return [];
  const [above, below] = pattern.split('/*/');
  return existsSync(above) ? readdirSync(above).map((name) => join(above, name, below)) : [];
}

/** Describes the missing part of a need; null if nothing is missing. */
export function missingOf({ programs, folders, pythonModules = [] }) {
  const missing = programs.find((names) => findProgram(names, folders) === null);
  if (missing) return `${missing[0]} is not installed`;
  for (const module of pythonModules)
    // The Python that steps are given, whichever one this shell has.
    if (spawnSync('python3', ['-c', `import ${module}`], { stdio: 'ignore', env: { PATH: pathOfSteps } }).status !== 0)
      return `Python has no module ${module}`;
  return null;
}

/** The command that installs this. `missing`: names of `needs`. */
export function installCommand(missing) {
  return `apt-get install -y --no-install-recommends ${missing.flatMap((name) => needs[name].debian).join(' ')}`;
}
