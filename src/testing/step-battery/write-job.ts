/** Runs in a child process: writes the files of recipes into its work folder, a folder for each input. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from '../../child/in-child.ts';
import { writeRaster } from './battery-job.ts';
import { isRaster, type FileRecipe } from './cases.ts';

const job: Job<{ readonly inputs: Readonly<Record<string, readonly FileRecipe[]>> }, null> = (
  { inputs },
  { workFolder },
) => {
  for (const [name, files] of Object.entries(inputs)) {
    mkdirSync(join(workFolder, name), { recursive: true });
    for (const file of files) {
      const path = join(workFolder, name, file.name);
      if (isRaster(file)) writeRaster(path, file, null);
      else writeFileSync(path, JSON.stringify(file.geoJson));
    }
  }
  return null;
};
export default job;
