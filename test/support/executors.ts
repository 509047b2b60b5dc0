/** Step hosts whose work an engine outside this process gets, and the parts of them that a test looks at. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import express from 'express';
import { pino } from 'pino';
import { openDatabase } from '../../src/app/database.ts';
import type { AppDefinition } from '../../src/app/definition/app-definition.ts';
import { CommandEngine, type CommandTemplates } from '../../src/app/execution/command-engine.ts';
import { JobDesk } from '../../src/app/execution/job-desk.ts';
import { JobRecords } from '../../src/app/execution/job-records.ts';
import { RemoteExecutor } from '../../src/app/execution/remote-executor.ts';
import type { StepEngine } from '../../src/app/execution/step-engine.ts';
import { errorBoundary } from '../../src/app/web/errors.ts';
import { kitFolder } from '../../src/files/index.ts';
import { fileURLToPath } from 'node:url';
import { cleanUpLater } from './cleanup.ts';
import { testFolder } from './folders.ts';

/** A file of `deploy/executors`. */
export const shippedTemplates = (name: string): CommandTemplates =>
  JSON.parse(readFileSync(kitFolder(`deploy/executors/${name}.json`), 'utf8')) as CommandTemplates;

/** Jobs as processes of this machine, by the templates that the kit ships. */
export function processEngine(definition: Pick<AppDefinition, 'module'>, jobsFolder: string): StepEngine {
  const templates = shippedTemplates('processes');
  return new CommandEngine(
    { ...templates, pollSeconds: 0.2 },
    {
      ...process.env,
      JOBS_FOLDER: jobsFolder,
      MY_APP: fileURLToPath(definition.module),
      STEP_CONFINEMENT: 'auto',
    },
  );
}

/** A desk that listens, and the database behind it. */
export async function startDesk(folder: string, port = 0) {
  const database = await openDatabase({ dataDir: folder, databaseUrl: null });
  const records = new JobRecords(database);
  // The runs of these tests are in no database.
  records.hasRun = async () => true;
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: taken } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${taken}`;
  const desk = new JobDesk(records, url);
  const app = express();
  /** Paths of the calls that came, in their order. */
  const calls: string[] = [];
  /** Answers instead of the desk, or does something before it. False: the desk answers. */
  const hook: { before: (req: express.Request, res: express.Response) => boolean } = { before: () => false };
  app.use((req, res, next) => {
    calls.push(`${req.method} ${req.path.replace(/^\/jobs\/[^/]+/, '')}`);
    Object.assign(req, { log: pino({ level: 'silent' }) });
    if (!hook.before(req, res)) next();
  });
  app.use(desk.routes);
  app.use(errorBoundary(({ code }) => code));
  server.on('request', app);
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await database.destroy();
  };
  return { url, port: taken, desk, records, database, calls, hook, close };
}

/** An executor that gives the steps of a definition to processes of this machine. */
export async function startRemoteExecutor(
  definition: AppDefinition,
  options: { folder?: string; port?: number; engine?: StepEngine } = {},
) {
  const folder = options.folder ?? (await testFolder());
  const desk = await startDesk(folder, options.port);
  const jobsFolder = join(folder, 'jobs');
  const engine = options.engine ?? processEngine(definition, jobsFolder);
  const executor = new RemoteExecutor({
    engine,
    desk: desk.desk,
    records: desk.records,
    addresses: [desk.url],
    log: pino({ level: 'silent' }),
    patience: { lostAfterMs: 3_000 },
  });
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await executor.close();
    await desk.close();
  };
  cleanUpLater(close);
  return { ...desk, executor, engine, folder, jobsFolder, close };
}
