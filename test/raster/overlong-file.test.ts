// @module-tag all
/** The limit to one file: what the kernel cuts off is told as that, whatever the job, or a library, makes of it. */
import { expect, test } from 'vitest';
import { runInChild, type ConfinementMode } from '../../src/child/index.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';

const overlongFileJob = new URL('../support/overlong-file-job.ts', import.meta.url);
const limit = 4 * 2 ** 20;

async function write(bytes: number, mode: ConfinementMode): Promise<null> {
  return runInChild<null>({
    module: overlongFileJob,
    input: { bytes },
    imports: [overlongFileJob],
    workFolder: await testFolder(),
    confinement: await testConfinement(mode),
    limits: { diskBytes: limit },
  });
}

test.each(['auto', 'none'] as const)('a job that crashes over it; confinement %s', async (mode) => {
  await write(limit, mode);
  await expect(write(limit + 1, mode)).rejects.toMatchObject({ code: 'job_disk_exceeded', data: { limit } });
});
