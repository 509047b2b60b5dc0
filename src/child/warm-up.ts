import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const entry = fileURLToPath(new URL('./entry.ts', import.meta.url));

/**
 * Fills the cache of compiled code for confined children, which may read it and not write: what one wrote would be run by
 * the server. A process of its own compiles what a job imports and opens no file; once for each state of a module.
 */
export function createWarmUp(
  cacheFolder: string,
  environment: Readonly<Record<string, string>>,
): (modules: readonly URL[]) => void {
  const seen = new Set<string>();
  return (modules) => {
    const name = nameOf([pathToFileURL(entry), ...modules], cacheFolder);
    if (name === null || seen.has(name)) return;
    seen.add(name);
    try {
      // The process that creates the mark does the work, and no later process repeats it.
      closeSync(openSync(join(cacheFolder, name), 'wx'));
    } catch {
      return;
    }
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', entry, 'compile', ...modules.map(({ href }) => href)],
      { env: environment, stdio: 'ignore' },
    );
    // Nobody waits for it or reports its failure: without it children compile for themselves.
    child.once('error', () => {});
    child.unref();
  };
}

function nameOf(modules: readonly URL[], cacheFolder: string): string | null {
  try {
    const state = modules.map((module) => [relative(cacheFolder, fileURLToPath(module)), statSync(module).mtimeMs]);
    return `warm-${createHash('sha256')
      .update(JSON.stringify([process.version, state]))
      .digest('hex')
      .slice(0, 24)}`;
  } catch {
    return null;
  }
}
