import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { KitError } from '../contract/kit-error.ts';

const run = promisify(execFile);
const mostBytes = 256 * 1024 * 1024;

/** Git in one folder. Nothing of a user's configuration changes what it prints or merges. */
export class Git {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** What it prints. Throws `KitError` with what it says where it fails. */
  async run(...args: readonly string[]): Promise<string> {
    try {
      return (await run('git', [...plain, ...args], { cwd: this.folder, maxBuffer: mostBytes })).stdout;
    } catch (cause) {
      const said = (cause as { stderr?: string }).stderr?.trim();
      throw new KitError('git_failed', `git ${args[0]} failed: ${said || (cause as Error).message}`, { cause });
    }
  }

  /** Whether it ends well. */
  succeeds(...args: readonly string[]): boolean {
    return spawnSync('git', [...plain, ...args], { cwd: this.folder, stdio: 'ignore' }).status === 0;
  }

  /** Paths, one by one. */
  async lines(command: string, ...args: readonly string[]): Promise<string[]> {
    return (await this.run(command, '-z', ...args)).split('\0').filter((line) => line !== '');
  }

  /** Whether a commit, or a stage of a conflict, has this file or folder. */
  has(commit: string, path: string): boolean {
    return this.succeeds('cat-file', '-e', `${commit}:${path}`);
  }

  /** A file's bytes, of a commit or, in a conflict, of a stage (`:1:path`); null where there is none. */
  async blob(name: string): Promise<Buffer | null> {
    if (!this.succeeds('cat-file', '-e', name)) return null;
    const { stdout } = await run('git', [...plain, 'cat-file', 'blob', name], {
      cwd: this.folder,
      maxBuffer: mostBytes,
      encoding: 'buffer',
    });
    return stdout;
  }

  /** A text file as a commit has it (or, of a conflict, a stage: `:1`); null where it has none. */
  async show(commit: string, path: string): Promise<string | null> {
    return this.has(commit, path) ? this.run('show', `${commit}:${path}`) : null;
  }
}

const plain = ['-c', 'core.quotePath=false', '-c', 'merge.conflictStyle=merge', '-c', 'advice.detachedHead=false'];
