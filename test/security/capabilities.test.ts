/** Rights of a child process: none, also if root runs the server. */
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/needs.mjs';
import { establishConfinement, runInChild, type Confinement } from '../../src/child/index.ts';
import { testConfinement } from '../support/confinement.ts';
import { testFolder } from '../support/folders.ts';
import { confined, needing } from '../support/needs.ts';

/** The confinement of a machine without setpriv and prlimit: root cannot give its children another user, so they run as root. */
async function withoutSetpriv(): Promise<Confinement> {
  const path = await testFolder();
  for (const name of ['bwrap', 'bash']) {
    const program = findProgram([name]);
    if (program !== null) await symlink(program, join(path, name));
  }
  return establishConfinement({ mode: 'required', warn: () => {}, path });
}

describe('a confined process has no capability, and can gain none', needing(await confined()), () => {
  const none = '0'.repeat(16);
  test.each([
    ['here', testConfinement],
    ['without setpriv', withoutSetpriv],
  ])('%s', async (_name, establish) => {
    const rights = await runInChild<Record<string, string>>({
      module: new URL('../support/capabilities-job.ts', import.meta.url),
      input: null,
      workFolder: join(await testFolder(), 'work'),
      confinement: await establish(),
    });
    expect(rights).toEqual({ CapInh: none, CapPrm: none, CapEff: none, CapBnd: none, CapAmb: none, NoNewPrivs: '1' });
  });
});
