import { resolve } from 'node:path';
import { SingleBar } from 'cli-progress';
import type { Sandbox } from '../../sandbox/create-sandbox.ts';

const shownRefusals = 10;

/** Runs one `--import`, with a bar on a terminal; says at the end what was taken and what was not. */
export async function importWithProgress(sandbox: Sandbox, path: string): Promise<void> {
  const bar = process.stderr.isTTY
    ? new SingleBar({
        format: `importing {bar} {percentage}%  {eta_formatted} left`,
        stream: process.stderr,
        hideCursor: true,
      })
    : null;
  const refusals: string[] = [];
  bar?.start(1, 0);
  try {
    const { imported, refused } = await sandbox.importPath(resolve(path), {
      onProgress(done, total) {
        bar?.setTotal(Math.max(1, total));
        bar?.update(Math.min(done, total));
      },
      onRefused: (where, reason) => void (refusals.length < shownRefusals && refusals.push(`  ${where}: ${reason}`)),
    });
    bar?.stop();
    console.log(`imported ${imported} items from ${path}${refused > 0 ? `; left out ${refused}:` : ''}`);
    refusals.forEach((line) => console.log(line));
    if (refused > refusals.length) console.log(`  and ${refused - refusals.length} more`);
  } finally {
    bar?.stop();
  }
}
