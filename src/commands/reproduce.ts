import { basename, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { readAppConfig, type AppConfig } from '../app/config.ts';
import type { AppDefinition } from '../app/definition/app-definition.ts';
import { createPlatformInput } from '../app/processing/platform-input.ts';
import type { Provenance } from '../app/processing/provenance.ts';
import { createContainers } from '../app/processing/containers.ts';
import { createStepHost } from '../app/processing/step-host.ts';
import type { RunOutput } from '../app/processing/take-outputs.ts';
import { KitError } from '../contract/index.ts';
import { createPlatformClient } from '../platform-client/index.ts';
import {
  confinementSettings,
  confinementVariables,
  ReportedJobError,
  runInChild,
  type Confinement,
} from '../child/index.ts';
import { kitCommand, messageOf, scratchFolder } from '../files/index.ts';
import { compareJob, type CompareInput } from '../raster/index.ts';
import { isCommand } from '../steps/command.ts';
import { outputsOf, type AnyStep } from '../steps/step.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { confine } from './confine.ts';
import { loadMyApp } from './my-app.ts';
import { bringInputs } from './reproduce/given-inputs.ts';
import { readRecorded, type Recorded } from './reproduce/recorded.ts';
import { digestFile } from './digest-file.ts';

const usage = `usage: ${kitCommand} reproduce FILE|RUN [options]: makes an output once more, and compares the two

  FILE           an output of your app (GeoTIFF, GeoPackage, GeoJSON), or the JSON of a run
  RUN            the id of a run in your app's database (DATA_DIR, DATABASE_URL)
  --input PATH   The files that the run has read, or folders with them; repeatable (default: INPUT_DIR, or the catalog at
                 PLATFORM_URL with PLATFORM_API_KEY)

Exits 0 only if the outputs have the same bytes, or with other software the same pixels or features.`;

export default defineCommand(import.meta, {
  usage,
  allowPositionals: true,
  options: { input: { type: 'string', multiple: true, default: [] } },
  async run({ values, positionals }) {
    const [what, more] = positionals;
    if (what === undefined || more !== undefined) throw wrongArguments('give one FILE or RUN', usage);
    const definition = await loadMyApp();
    const read = z.object(confinementVariables).parse(process.env);
    const confinement = await confine(confinementSettings(process.env, read), []);
    const scratch = scratchFolder('reproduce');
    const folder = scratch.path;
    const stop = new AbortController();
    onInterrupt(() => stop.abort(new KitError('interrupted', 'interrupted')));
    try {
      const from = callerFolder();
      const recorded = await readRecorded(what, resolve(from, what), confinement, folder);
      const paths = values.input.map((path) => resolve(from, path));
      return await reproduce({ recorded, paths, definition, confinement, folder, signal: stop.signal });
    } finally {
      await scratch.remove();
    }
  },
});

interface Reproduction {
  readonly recorded: Recorded;
  readonly paths: readonly string[];
  readonly definition: AppDefinition;
  readonly confinement: Confinement;
  readonly folder: string;
  readonly signal: AbortSignal;
}

async function reproduce({ recorded, paths, definition, confinement, folder, signal }: Reproduction): Promise<number> {
  const then = recorded.provenance;
  console.log(`made by            ${then.step.id} ${then.step.version}, ${softwareOf(then)}`);
  const sources = await bringSources(then, paths, definition, confinement, folder);
  const packsOutputs = definition.profile?.severalOutputs === 'zip' && recorded.file === null;
  const engine = process.env['CONTAINER_ENGINE'];
  const containers = engine ? { containers: createContainers(engine, folder) } : {};
  const host = createStepHost({ definition, confinement, concurrency: 1, packsOutputs, ...containers, ...sources });
  if (host.find(then.step.id).platformModels)
    throw new KitError(
      'not_reproducible',
      `${then.step.id} was done by a model of the platform, and nobody knows which version of it: it cannot be made again here`,
    );
  const { outputs, provenance: now } = await host.run(
    {
      owner: 'reproduce',
      stepId: then.step.id,
      stepVersion: then.step.version,
      parameters: then.parameters,
      input: then.input,
      operationId: then.operationId,
      workFolder: join(folder, 'work'),
    },
    { signal, onProgress: () => {} },
  );
  if (!isDeepStrictEqual(then.inputs, now.inputs)) {
    console.log(`DIFFERS            the input: ${firstOtherInput(then, now)}`);
    return 1;
  }
  console.log(`input              the same, ${then.inputs.reduce((n, { files }) => n + files.length, 0)} files`);
  const isSameCode = now.step.code === then.step.code;
  // Nobody knows which version of a program has made the file.
  const isSameSoftware =
    !isCommand(host.find(then.step.id)) && isSameCode && isDeepStrictEqual(now.software, then.software);
  if (!isSameCode) console.log("note               the step's code has changed, though its version is the same");
  if (!isDeepStrictEqual(now.software, then.software))
    console.log(`note               made here by ${softwareOf(now)}`);
  const step = host.find(then.step.id);
  const findings = recorded.file
    ? [await compareFile(recorded.file, outputs, { step, isSameSoftware, confinement, folder })]
    : compareDigests(recorded, outputs);
  if (findings.length === 0)
    throw new KitError('nothing_recorded', 'the run has recorded no output: there is nothing to compare');
  for (const { fileName, difference } of findings)
    console.log(
      difference === null ? `the same           ${fileName}` : `DIFFERS            ${fileName}: ${difference}`,
    );
  return findings.every(({ difference }) => difference === null) ? 0 : 1;
}

function softwareOf({ software }: Provenance): string {
  return Object.entries(software)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

/** Sources of the input: the given files, or the original sources of the run. */
async function bringSources(
  { input, inputs }: Provenance,
  paths: readonly string[],
  definition: AppDefinition,
  confinement: Confinement,
  folder: string,
) {
  const types = input.type === 'named' ? Object.values(input.inputs).map(({ type }) => type) : [input.type];
  if (paths.length > 0 || types.every((type) => type === 'synthetic'))
    return bringInputs({ input, inputs }, paths, folder);
  let config: AppConfig;
  try {
    config = readAppConfig(process.env, () => {});
  } catch (error) {
    throw new KitError(
      'bad_arguments',
      `the run has read ${types.includes('platform') ? "items of the platform's catalog" : 'files of the app'}: give them as --input, or the app's settings. ${messageOf(error)}`,
    );
  }
  const client = createPlatformClient({
    baseUrl: config.platformUrl,
    apiKey: config.platformApiKey.reveal(),
    ...(definition.profile && { profile: definition.profile }),
  });
  return {
    inputDir: config.inputDir,
    platformInput: createPlatformInput({
      client,
      allowedOrigins: config.assetOrigins,
      maxBytes: config.inputMaxBytes,
      confinement,
    }),
  };
}

function firstOtherInput(then: Provenance, now: Provenance): string {
  for (const [i, { name, files }] of then.inputs.entries())
    for (const [j, file] of files.entries()) {
      const other = now.inputs[i]?.files[j];
      if (!isDeepStrictEqual(file, other))
        return `${name} was ${file.fileName} with SHA-256 ${file.sha256}, and is ${other ? `${other.fileName} with ${other.sha256}` : 'gone'}`;
    }
  return 'it has more files than it had';
}

interface Finding {
  readonly fileName: string;
  readonly difference: string | null;
}

function compareDigests({ outputs }: Recorded, made: readonly RunOutput[]): Finding[] {
  const more = made
    .map(({ path }) => basename(path))
    .filter((name) => outputs.length > 0 && !outputs.some(({ fileName }) => fileName === name))
    .map((fileName) => ({ fileName, difference: 'came out, and was not recorded' }));
  const found = outputs.map(({ fileName, sha256 }) => {
    const again = made.find(({ path }) => basename(path) === fileName);
    const said = again
      ? `SHA-256 ${again.sha256}, and was ${sha256}; give the file to compare pixels`
      : 'did not come out';
    return { fileName, difference: again?.sha256 === sha256 ? null : said };
  });
  return [...found, ...more];
}

async function compareFile(
  file: string,
  made: readonly RunOutput[],
  {
    step,
    isSameSoftware,
    confinement,
    folder,
  }: { step: AnyStep; isSameSoftware: boolean; confinement: Confinement; folder: string },
): Promise<Finding> {
  const again = made.find(({ path }) => basename(path) === basename(file)) ?? (made.length === 1 ? made[0] : undefined);
  if (!again)
    throw new KitError(
      'bad_arguments',
      `the step makes ${made.map(({ path }) => basename(path)).join(', ')}: give the file one of these names`,
    );
  const fileName = basename(file);
  if ((await digestFile(file)) === again.sha256) return { fileName, difference: null };
  const declared = outputsOf(step).find(([, one]) => one.fileName === basename(again.path))?.[1];
  const input: CompareInput = { kind: declared?.kind ?? 'raster' };
  const difference = z
    .string()
    .nullable()
    .parse(
      await runInChild<unknown>({
        module: compareJob,
        input,
        files: [file, again.path].map((path) => ({ path, name: basename(path) })),
        workFolder: join(folder, 'compare'),
        confinement,
      }).catch((error: unknown) => {
        if (error instanceof ReportedJobError && error.claimedKind === 'input')
          return `cannot be read: ${error.message}`;
        throw error;
      }),
    );
  if (difference === null && isSameSoftware)
    return { fileName, difference: 'the same pixels or features, but other bytes: it was changed after it was made' };
  return { fileName, difference };
}
