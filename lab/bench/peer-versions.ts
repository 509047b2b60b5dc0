/** Versions of the programs and packages that a bench compares the kit with. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BenchRow } from './rows.ts';

function printedBy(program: string, ...args: string[]): string | null {
  const { error, stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return error ? null : (/\d+\.\d+(\.\d+)?/.exec(stdout)?.[0] ?? null);
}

const requirePeer = createRequire(new URL('./peers/package.json', import.meta.url));
const requireOwn = createRequire(import.meta.url);

function ofPackage(name: string, load: NodeJS.Require): string | null {
  for (const folder of load.resolve.paths(name) ?? []) {
    try {
      return (JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')) as { version: string }).version;
    } catch {
      // It is in a folder further up.
    }
  }
  return null;
}

/** Title and version of each peer, by its name in the rows. Peers that are the kit itself or Node have no version. */
const peers: Readonly<Record<string, readonly [title: string, version: () => string | null]>> = {
  "GDAL's own program": ['GDAL', () => printedBy('gdalinfo', '--version')],
  saga_cmd: ['saga_cmd', () => printedBy('saga_cmd', '--version')],
  cp: ['cp of coreutils', () => printedBy('cp', '--version')],
  '@tus/server': ['@tus/server', () => ofPackage('@tus/server', requirePeer)],
  multer: ['multer', () => ofPackage('multer', requirePeer)],
  'a bare loop, axios': ['axios', () => ofPackage('axios', requireOwn)],
};

/** Returns the versions of the peers in these rows, such as `GDAL 3.6.2`. */
export function peerVersionsOf(rows: readonly BenchRow[]): string[] {
  const names = new Set(rows.flatMap(({ peer }) => (peer ? [peer.name] : [])));
  return [...names].flatMap((name) => {
    const [title, versionOf] = peers[name] ?? [];
    const version = versionOf?.() ?? null;
    return version === null ? [] : [`${title} ${version}`];
  });
}
