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

/** By the name of the peer in the rows. Peers that are the kit itself or Node have no version of their own. */
const sources: Readonly<Record<string, () => string | null>> = {
  "GDAL's own program": () => printedBy('gdalinfo', '--version'),
  saga_cmd: () => printedBy('saga_cmd', '--version'),
  cp: () => printedBy('cp', '--version'),
  '@tus/server': () => ofPackage('@tus/server', requirePeer),
  multer: () => ofPackage('multer', requirePeer),
  'a bare loop, axios': () => ofPackage('axios', requireOwn),
};
const names: Readonly<Record<string, string>> = {
  "GDAL's own program": 'GDAL',
  'a bare loop, axios': 'axios',
  cp: 'cp of coreutils',
};

/** The versions of the peers of these rows, such as `GDAL 3.6.2`. */
export function peerVersionsOf(rows: readonly BenchRow[]): string[] {
  const peers = new Set(rows.flatMap(({ peer }) => (peer ? [peer.name] : [])));
  return [...peers].flatMap((peer) => {
    const version = sources[peer]?.() ?? null;
    return version === null ? [] : [`${names[peer] ?? peer} ${version}`];
  });
}
