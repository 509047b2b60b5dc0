import { existsSync } from 'node:fs';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join, parse, resolve } from 'node:path';
import { readAppConfig, type AppConfig } from '../app/config.ts';
import { openDatabase } from '../app/database.ts';
import { extensionsOf } from '../app/processing/run-input.ts';
import { SqlRunStore } from '../app/runs/sql-run-store.ts';
import { KitError } from '../contract/index.ts';
import { resolveFileInside, resolveInside } from '../raster/index.ts';
import type { Bundle } from '../sandbox/bundles/bundle.ts';
import { localObstacle, localPathsOf, Room } from '../sandbox/bundles/inputs.ts';
import { sandboxCall } from '../testing/sandbox-call.ts';
import { readSecret } from '../sandbox/config.ts';
import { callerFolder, readArguments, wrongArguments } from './arguments.ts';
import { runCommand } from './command.ts';
import { sha256Of } from './sha256-of.ts';

const usage = `usage: npm run bundle -- LAUNCH_ID [options]: a run as one file, to be played again (npm run replay)
       npm run bundle -- --run RUN_ID: the same by a run of your app (DATA_DIR, DATABASE_URL)

  --sandbox URL   the sandbox that has seen it (default http://127.0.0.1:4010); SANDBOX_ADMIN_KEY is its key where it has one
  --out FILE      default: LAUNCH_ID.bundle.json`;

await runCommand(async () => {
  // An id of a run may begin with a hyphen, which stands for an option.
  const args = process.argv.slice(2);
  const at = args.indexOf('--run');
  const joined =
    at < 0 || args[at + 1] === undefined
      ? args
      : [...args.slice(0, at), `--run=${args[at + 1]}`, ...args.slice(at + 2)];
  const { values, positionals } = readArguments(
    usage,
    {
      allowPositionals: true,
      options: {
        run: { type: 'string' },
        sandbox: { type: 'string', default: 'http://127.0.0.1:4010' },
        out: { type: 'string' },
      },
    },
    joined,
  );
  const [given, more] = positionals;
  if (more !== undefined || (given === undefined) === (values.run === undefined))
    throw wrongArguments('give a LAUNCH_ID, or --run RUN_ID', usage);
  if (!URL.canParse(values.sandbox)) throw wrongArguments(`--sandbox ${values.sandbox} must be an address`, usage);
  const adminKey = readSecret(process.env, 'SANDBOX_ADMIN_KEY');
  const sandbox = { url: values.sandbox.replace(/\/+$/, ''), ...(adminKey ? { adminKey } : {}) };
  await fetch(`${sandbox.url}/health`).catch(() => {
    throw new KitError('sandbox_away', `no sandbox answers at ${sandbox.url}: name it with --sandbox URL`);
  });
  const config =
    values.run === undefined
      ? null
      : readAppConfig({ PLATFORM_API_KEY: 'unused', PLATFORM_URL: sandbox.url, ...process.env }, () => {});
  const launchId = given ?? (await launchOfRun(sandbox, values.run!, config!));
  let made = await sandboxCall<Bundle>(sandbox, `launches/${encodeURIComponent(launchId)}/bundle`);
  if (config !== null) made = await withLocalInputs(made, config.inputDir);
  const file = resolve(callerFolder(), values.out ?? `${launchId}.bundle.json`);
  await writeFile(file, `${JSON.stringify(made, null, 2)}\n`);
  console.log(`${file}: ${made.causes.length} causes, ${made.effects.length} calls, ${made.outputs.length} outputs`);
  for (const { fileName, sizeBytes, data } of made.inputs)
    console.log(
      data === null
        ? `its input ${fileName} (${sizeBytes} bytes) is told by its digest: give it to replay with --input`
        : `it holds its input ${fileName} (${sizeBytes} bytes)`,
    );
  for (const obstacle of made.obstacles) console.log(`it cannot be played again as it is: ${obstacle}`);
});

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
  const room = new Room(inputs.reduce((sum, { data, sizeBytes }) => sum + (data === null ? 0 : sizeBytes), 0));
  let { obstacles } = made;
  for (const path of localPathsOf(made)) {
    const files = await filesOf(inputDir, path);
    for (const { given, real } of files) {
      const from = { type: 'local' as const, path: given };
      const [{ size: sizeBytes }, sha256] = [await stat(real), await sha256Of(real)];
      inputs.push({ from, fileName: basename(given), sizeBytes, sha256, data: await room.dataOf(real, sizeBytes) });
    }
    if (files.length > 0) obstacles = obstacles.filter((one) => one !== localObstacle(path));
  }
  return { ...made, inputs, obstacles };
}

const readExtensions = new Set([...extensionsOf.raster, ...extensionsOf.vector]);

/**
 * What the app reads of a local input: the rasters and features of a folder, or one file, each with what lies beside it under
 * its name; by the path that the run was given, and where it lies. None where it is gone.
 */
async function filesOf(inputDir: string, path: string): Promise<{ given: string; real: string }[]> {
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
