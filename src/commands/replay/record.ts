import { existsSync } from 'node:fs';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join, parse } from 'node:path';
import { readAppConfig, type AppConfig } from '../../app/config.ts';
import { openDatabase } from '../../app/database.ts';
import { extensionsOf } from '../../app/processing/run-input.ts';
import { SqlRunStore } from '../../app/runs/sql-run-store.ts';
import { KitError } from '../../contract/index.ts';
import { resolveFileInside, resolveInside } from '../../files/index.ts';
import type { Bundle } from '../../sandbox/bundles/bundle.ts';
import { localObstacle, localPathsOf, ByteBudget } from '../../sandbox/bundles/inputs.ts';
import { sandboxCall } from '../../testing/sandbox-call.ts';
import { readSecret } from '../../sandbox/config.ts';
import { digestFile } from '../digest-file.ts';

/** A launch that a sandbox has seen, or the run of one's own app that belongs to it. */
export type Recorded = { readonly launchId: string } | { readonly runId: string };

/**
 * Fetches what a sandbox has seen of a launch, with the inputs. A run's local inputs come from the app's own folder (DATA_DIR,
 * DATABASE_URL, INPUT_DIR). Throws `KitError` if no sandbox answers, or the launch or run is not known.
 */
export async function record(url: string, wanted: Recorded): Promise<Bundle> {
  const adminKey = readSecret(process.env, 'SANDBOX_ADMIN_KEY');
  const sandbox = { url: url.replace(/\/+$/, ''), ...(adminKey ? { adminKey } : {}) };
  await fetch(`${sandbox.url}/health`).catch(() => {
    throw new KitError('sandbox_away', `no sandbox answers at ${sandbox.url}: name it with --sandbox URL`);
  });
  const bundleOf = (launchId: string) =>
    sandboxCall<Bundle>(sandbox, `launches/${encodeURIComponent(launchId)}/bundle`).catch((error: unknown) => {
      if (!(error instanceof KitError && error.status === 404)) throw error;
      throw new KitError(
        'no_such_launch',
        `the sandbox at ${sandbox.url} has seen no launch ${launchId}: copy the id from its inspector, or name another sandbox with --sandbox`,
        { cause: error },
      );
    });
  if ('launchId' in wanted) return bundleOf(wanted.launchId);
  const config = readAppConfig({ PLATFORM_API_KEY: 'unused', PLATFORM_URL: sandbox.url, ...process.env }, () => {});
  return withLocalInputs(await bundleOf(await launchOfRun(sandbox, wanted.runId, config)), config.inputDir);
}

/** Writes a bundle to a file, and prints its contents. */
export async function save(made: Bundle, file: string): Promise<void> {
  await writeFile(file, `${JSON.stringify(made, null, 2)}\n`);
  console.log(`${file}: ${made.causes.length} causes, ${made.effects.length} calls, ${made.outputs.length} outputs`);
  for (const { fileName, sizeBytes, data } of made.inputs)
    console.log(
      data === null
        ? `it contains only the digest of the input ${fileName} (${sizeBytes} bytes): pass the file to replay with --input`
        : `it contains the input ${fileName} (${sizeBytes} bytes)`,
    );
  for (const obstacle of made.obstacles) console.log(`it cannot be replayed unchanged: ${obstacle}`);
}

/** By the operation that the run has asked for. Throws `KitError` where the run or the operation is not known. */
async function launchOfRun(
  sandbox: Parameters<typeof sandboxCall>[0],
  runId: string,
  config: AppConfig,
): Promise<string> {
  const databaseUrl = config.databaseUrl?.reveal() ?? null;
  if (databaseUrl === null && !existsSync(join(config.dataDir, 'app.db')))
    throw new KitError(
      'run_not_found',
      `there is no database of an app in ${config.dataDir} (DATA_DIR) to look for a run in`,
    );
  const database = await openDatabase({ dataDir: config.dataDir, databaseUrl });
  try {
    const run = await new SqlRunStore(database, Date.now).find(runId);
    if (!run) throw new KitError('run_not_found', `the app's database has no run ${runId} (DATA_DIR, DATABASE_URL)`);
    const { operations } = await sandboxCall<{ operations: { operationId: string; launchId: string }[] }>(
      sandbox,
      'operations',
    );
    const own = operations.find(({ operationId }) => operationId === run.operationId);
    if (!own) throw new KitError('run_not_found', `${sandbox.url} has no operation of run ${runId}`);
    return own.launchId;
  } finally {
    await database.destroy();
  }
}

/** With the files of the app's own input folder that the run was given. What is not there stays an obstacle. */
async function withLocalInputs(made: Bundle, inputDir: string): Promise<Bundle> {
  const inputs = [...made.inputs];
  const budget = new ByteBudget(inputs.reduce((sum, { data, sizeBytes }) => sum + (data === null ? 0 : sizeBytes), 0));
  let { obstacles } = made;
  for (const path of localPathsOf(made)) {
    const files = await findFiles(inputDir, path);
    for (const { given, real } of files) {
      const from = { type: 'local' as const, path: given };
      const [{ size: sizeBytes }, sha256] = [await stat(real), await digestFile(real)];
      inputs.push({ from, fileName: basename(given), sizeBytes, sha256, data: await budget.dataOf(real, sizeBytes) });
    }
    if (files.length > 0) obstacles = obstacles.filter((one) => one !== localObstacle(path));
  }
  return { ...made, inputs, obstacles };
}

const readExtensions = new Set([...extensionsOf.raster, ...extensionsOf.vector]);

/**
 * Files that the app reads of a local input: the rasters and features of a folder, or one file. Files beside them under the
 * same name are included. Each has the path that the run was given, and its real path. Empty if the input is gone.
 */
async function findFiles(inputDir: string, path: string): Promise<{ given: string; real: string }[]> {
  const real = await resolveInside(inputDir, path).catch(() => null);
  if (real === null) return [];
  const isFolder = (await stat(real)).isDirectory();
  const folder = isFolder ? path : dirname(path);
  const names = (await readdir(await resolveInside(inputDir, folder))).filter((name) => !name.startsWith('.'));
  const read = isFolder ? names.filter((name) => readExtensions.has(extname(name).toLowerCase())) : [basename(path)];
  const stems = read.map((name) => parse(name).name);
  const files = await Promise.all(
    names
      .filter((name) => stems.some((stem) => name === stem || name.startsWith(`${stem}.`)))
      .toSorted()
      .map(async (name) => {
        const given = join(folder, name);
        return { given, real: await resolveFileInside(inputDir, given).catch(() => null) };
      }),
  );
  return files.flatMap(({ given, real: place }) => (place === null ? [] : [{ given, real: place }]));
}
