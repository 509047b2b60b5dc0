import { didYouMean } from '../contract/did-you-mean.ts';
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkParameters, parameterSchema } from '../app/processing/step-parameters.ts';
import { assumedLimits, KitError } from '../contract/index.ts';
import { codeOf, scratchFolder } from '../files/index.ts';
import { callerFolder } from './arguments.ts';
import { typedParameters } from '../testing/app-session.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { flow, type Demo } from './demo/flow.ts';
import { demoArguments, usage, readDemoOptions } from './demo/options.ts';
import { createReport } from './demo/report.ts';
import { stageInputs, stageNamed } from './demo/stage-inputs.ts';
import { freePort } from './free-port.ts';
import { loadMyApp } from './my-app.ts';
import { sandboxControl } from '../testing/sandbox-control.ts';
import { startService, type ServiceProcess } from './service-process.ts';

/** Folder of the user's rasters. The sandbox imports them to a collection of the same name. */
const importedCollection = 'scene';

export default defineCommand(import.meta, {
  usage,
  ...demoArguments,
  async run(line) {
    const given = readDemoOptions(line, callerFolder());
    const definition = await loadMyApp();
    const options = { ...given, stepId: given.stepId ?? definition.steps[0]?.id ?? '', definition };
    const known = definition.steps.map(({ id }) => id);
    const step = definition.steps.find(({ id }) => id === options.stepId);
    if (!step)
      throw new KitError(
        'bad_arguments',
        `there is no step ${JSON.stringify(options.stepId)}; there are ${known.join(', ')}${didYouMean(options.stepId, known)}`,
      );
    checkParameters(step, typedParameters({ parameters: parameterSchema(step) }, options.parameters));
    const scratch = scratchFolder('demo');
    const folder = scratch.path;
    // Includes services that are still starting, so that an interrupt stops them like any other.
    const services: Promise<ServiceProcess>[] = [];
    let isInterrupted = false;
    const start: typeof startService = (...service) => {
      if (isInterrupted) throw new KitError('interrupted', 'interrupted');
      const starting = startService(...service);
      services.push(starting);
      return starting;
    };
    const cleanUp = async () => {
      const started = await Promise.allSettled(services);
      await Promise.allSettled(
        started.flatMap((server) => (server.status === 'fulfilled' ? [server.value.stop()] : [])),
      );
      await scratch.remove();
    };
    const interrupted = new Promise<number>((resolve) => {
      onInterrupt(() => {
        isInterrupted = true;
        resolve(130);
      });
    });
    try {
      return await Promise.race([demo(options, folder, start), interrupted]);
    } finally {
      await cleanUp();
      // Half of a demo may still wait for something.
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- a signal sets it during an await
      if (isInterrupted) process.exit(130);
    }
  },
});

async function demo(options: Demo, folder: string, start: typeof startService): Promise<number> {
  const report = createReport(process.stdout);
  const inputDir = join(folder, 'inputs');
  const scene = join(inputDir, importedCollection);
  const stagedFiles = await stageInputs(options.inputs, scene);
  for (const [name, path] of Object.entries(options.namedInputs)) await stageNamed(name, path, join(inputDir, name));
  // Before anything runs: an output that cannot be written must not cost a whole run.
  await mkdir(options.outDir, { recursive: true }).catch((cause: unknown) => {
    throw new KitError('bad_arguments', `--out ${options.outDir} cannot be made or written to (${codeOf(cause)})`, {
      cause,
    });
  });

  const { pollIntervalMs } = options.definition.profile?.limits ?? assumedLimits;
  const apiKey = randomBytes(32).toString('base64url');
  const logLevel = process.env['LOG_LEVEL'] ?? 'error';
  // The app is told beforehand where the sandbox will be: they start side by side.
  const port = await freePort();
  const [sandbox, app] = await Promise.all([
    start(
      'sandbox',
      [
        ...['--port', String(port), '--data', join(folder, 'sandbox')],
        ...['--profile', fileURLToPath(options.definition.module)],
        ...(stagedFiles > 0 ? ['--seed', 'none', '--import', scene] : ['--seed', 'demo']),
      ],
      {
        SANDBOX_API_KEY: apiKey,
        SANDBOX_API_KEY_PERMISSIONS: options.permissions.join(','),
        HOST: '127.0.0.1',
        LOG_LEVEL: logLevel,
      },
    ),
    start('app', [], {
      PLATFORM_URL: `http://127.0.0.1:${port}`,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: randomBytes(32).toString('base64url'),
      DATA_DIR: join(folder, 'app'),
      INPUT_DIR: inputDir,
      // Polls as often as the platform allows, because somebody looks on.
      POLL_INTERVAL_MS: process.env['POLL_INTERVAL_MS'] ?? String(pollIntervalMs.min),
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_LEVEL: logLevel,
      SHOW_DEFECTS: 'true',
    }),
  ]);
  report.line(`sandbox            ${sandbox.url}`);
  report.line(`app                ${app.url}`);

  // The demo reads the result with its own key.
  const { apiKey: ownKey } = await sandboxControl({ url: sandbox.url }).createKey(['files_admin']);
  const place = { sandbox: { url: sandbox.url, apiKey: ownKey }, app, scene: importedCollection, stagedFiles, folder };
  return Promise.race([flow(options, place, report), sandbox.ended, app.ended]);
}
