/** Attacks of a child process on the machine: kernel, memory, disk. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { establishConfinement, runInChild, type ChildLimits, type Confinement } from '../../src/child/index.ts';
import { codeOf, scratchFolder } from '../../src/files/index.ts';
import type { Attack } from './attack.ts';

const script = fileURLToPath(new URL('./deeds.py', import.meta.url));
const module = new URL('./deed-job.ts', import.meta.url);
const limits: ChildLimits = { timeoutMs: 60_000, memoryBytes: 200e6, diskBytes: 50e6 };

let found: Promise<Confinement> | null = null;
export const confinement = (): Promise<Confinement> =>
  (found ??= establishConfinement({ mode: 'required', warn: () => {} }));

/** Text that a confined child printed, or the code of the host's finding. */
async function confined(deed: string): Promise<string> {
  const folder = scratchFolder('attack');
  const lent = join(folder.path, 'lent.bin');
  writeFileSync(lent, 'x'.repeat(5_000));
  try {
    return await runInChild<string>({
      ...{
        module,
        input: deed,
        files: [{ path: lent, name: 'lent.bin' }],
        workFolder: join(folder.path, 'work'),
        limits,
      },
      confinement: await confinement(),
    });
  } catch (error) {
    return codeOf(error) ?? String(error);
  } finally {
    await folder.remove();
  }
}

/** Null if a process that nothing confines can do the deed. */
function unconfined(deed: string): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), 'attack-control-'));
  try {
    const lent = join(folder, 'lent.bin');
    writeFileSync(lent, 'x'.repeat(5_000));
    const { stdout } = spawnSync('python3', [script, deed, lent], { cwd: folder, encoding: 'utf8', timeout: 60_000 });
    return Promise.resolve(stdout.trim() === 'done' ? null : `shows nothing here: ${stdout.trim()}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A deed that no child may do at all. */
const refused = (name: string, deed: string): Attack => ({
  group: 'the kernel',
  name,
  isShort: true,
  control: () => unconfined(deed),
  attack: async () => ((await confined(deed)) === 'done' ? 'it was done' : null),
});

/** A deed that uses more than the limits: the host must find it out. */
const counted = (group: string, name: string, deed: string, code: string, isShort = true): Attack => ({
  group,
  name,
  isShort,
  control: () => unconfined(deed),
  async attack() {
    const seen = await confined(deed);
    // Some file systems and kernels refuse the deed before it costs anything.
    return seen === code || seen.includes('Error') ? null : `the host saw ${seen}, and not ${code}`;
  },
});

export const onChildren: readonly Attack[] = [
  refused('opens the settings of the kernel for writing', 'kernel_settings'),
  refused('takes a write lease on a file that it was lent', 'write_lease'),
  refused('asks for notifications of a folder', 'notification'),
  refused('maps shared anonymous pages', 'shared_pages'),
  refused('maps shared pages of /dev/zero', 'shared_zero'),
  refused('watches files, which has a limit for the whole user', 'watches'),
  refused('makes a user namespace by clone', 'namespace'),
  refused('enlarges a pipe', 'large_pipe'),
  refused('enlarges the buffers of a socket', 'large_socket'),
  refused('hides its descriptors', 'hidden_descriptors'),
  refused('opens a terminal', 'terminal'),
  refused('puts bytes into attributes of files', 'attributes'),
  refused('allocates blocks beyond the end of a file', 'blocks_beyond_end'),
  counted('memory', 'page tables', 'page_tables', 'job_memory_exceeded'),
  counted('memory', 'locks on files', 'locks', 'job_memory_exceeded'),
  refused('opens connections within its own network', 'sockets'),
  refused('puts descriptors into the message of a socket', 'descriptors_in_flight'),
  refused('takes locks that show no owner', 'locks_without_owner'),
  counted('memory', 'buffers of sockets', 'unix_sockets', 'job_memory_exceeded'),
  counted('memory', 'sets of watches, which have a limit for the whole user', 'watch_sets', 'job_processes_exceeded'),
  counted('memory', 'thousands of descriptors', 'many_descriptors', 'job_processes_exceeded'),
  counted('disk', 'a file that was removed and is mapped', 'removed_mapping', 'job_disk_exceeded'),
  counted('disk', 'files below deep folders', 'deep_folders', 'job_disk_exceeded'),
  counted('disk', 'files that were removed and are open', 'deleted_files', 'job_disk_exceeded'),
  counted('disk', 'an answer right after it has written too much', 'answer_at_once', 'job_disk_exceeded'),
];
