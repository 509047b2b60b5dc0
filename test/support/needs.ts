/** Needs of tests besides npm's packages. A test that lacks one is skipped, with a reason that `report.ts` prints. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, type TestOptions } from 'vitest';
import { findProgram, installCommand, missingOf, needs, type NeedName } from '../../scripts/needs.mjs';
import { indexCatalogueFolder, landsatFolder, projectRoot } from './folders.ts';
import { testConfinement } from './confinement.ts';

/** Reason for a skipped test, and a remedy for a person. */
export interface SkipReason {
  readonly why: string;
  readonly remedy: string;
}

declare module 'vitest' {
  interface TaskMeta {
    skipped?: SkipReason;
  }
}

/** A condition of a test; `reason` is null where it holds. */
export interface Condition {
  readonly reason: SkipReason | null;
}

const known = new Map<NeedName, Condition>();

function program(name: NeedName): Condition {
  const found = known.get(name);
  if (found) return found;
  const why = missingOf(needs[name]);
  const condition = {
    reason: why === null ? null : { why, remedy: `sudo ${installCommand([name])}` },
  };
  known.set(name, condition);
  return condition;
}

/** A condition that a test states for itself. */
export const unless = (holds: boolean, why: string, remedy: string): Condition => ({
  reason: holds ? null : { why, remedy },
});

/** npm's registry. */
export const registry = async (): Promise<Condition> =>
  unless(
    await promisify(execFile)('npm', ['view', 'busboy', 'version'], { timeout: 30_000 }).then(
      () => true,
      () => false,
    ),
    'the npm registry cannot be reached',
    'connect the machine to it',
  );

/** Confined processes. */
export const confined = async (): Promise<Condition> =>
  unless(
    (await testConfinement()).kind === 'bubblewrap',
    'bubblewrap does not work here',
    'install bubblewrap, and let it make user namespaces (docs/deploy.md)',
  );

/** Python with its standard library. */
export const python = unless(
  findProgram(['python3']) !== null,
  'python3 is not installed',
  'sudo apt-get install python3',
);

/** Returns the path of a Node that is older than the kit's. Null if this machine has none. */
export function findOlderNode(): string | null {
  const paths = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/local/bin'].map((one) =>
    join(one, 'node'),
  );
  const major = (node: string) =>
    Number(execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1).split('.')[0]);
  const own = Number(process.versions.node.split('.')[0]);
  return paths.find((node) => existsSync(node) && major(node) < own) ?? null;
}

/** A Node that is older than the kit's. */
export const olderNode = (path: string | null): Condition =>
  unless(
    path !== null,
    'there is no Node older than the kit’s',
    'install one, for example: sudo apt-get install nodejs',
  );

/** Real rasters beside the project. */
export const landsat = unless(
  existsSync(landsatFolder),
  '../shared/data is not there',
  "none: its rasters lie on the makers' machines",
);

/** A catalogue of spectral indices beside the project. */
export const indexCatalogue = unless(
  existsSync(indexCatalogueFolder),
  '../shared/data is not there',
  "none: the catalogue lies on the makers' machines",
);

/** Published schemas of STAC beside the project. */
export const schemas = unless(
  existsSync(join(projectRoot, '../shared/schemas')),
  '../shared/schemas is not there',
  "none: the schemas lie on the makers' machines",
);

/** A disk of a few megabytes, which only root mounts. */
export const smallDisk = (disk: unknown) =>
  unless(disk !== null, 'no small disk can be mounted', 'run the tests as root');

/** True if the machine has this program. */
export const isThere = (name: NeedName): boolean => program(name).reason === null;

type Wanted = readonly (NeedName | Condition)[];

const firstReason = (wanted: Wanted): SkipReason | undefined =>
  wanted.map((one) => (typeof one === 'string' ? program(one) : one).reason).find((reason) => reason !== null) ??
  undefined;

/** Options of a test or a suite: skipped, with the first reason, unless all of this is there. */
export function needing(...wanted: Wanted): TestOptions {
  const skipped = firstReason(wanted);
  return skipped ? { skip: true, meta: { skipped } } : {};
}

/**
 * Skips every test of the file that calls this, with the first reason, unless all of this is there. Returns true if it is. The hooks of the
 * file run all the same.
 */
export function fileNeeds(...wanted: Wanted): boolean {
  const skipped = firstReason(wanted);
  if (skipped)
    beforeEach((context) => {
      context.task.meta.skipped = skipped;
      context.skip(skipped.why);
    });
  return skipped === undefined;
}
