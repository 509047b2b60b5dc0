import { json, Router, type Response } from 'express';
import * as z from 'zod';
import { isShallow, tooDeep } from '../../contract/index.ts';
import { FairQueue } from '../../child/index.ts';
import { inputsOf, mainInput, outputsOf, previewOf, sourceTypeOfOutput, type AnyStep } from '../../steps/step.ts';
import { listInputs, runInput } from '../processing/run-input.ts';
import { defaultsOf, parameterSchema } from '../processing/step-parameters.ts';
import type { OwnUploads } from '../catalog/own-uploads.ts';
import type { StepHost } from '../processing/step-host.ts';
import { parseRequest, RequestError } from '../web/errors.ts';
import { pageDeadline } from '../web/page-call.ts';
import type { LaunchStore } from '../launch/launch-store.ts';
import { launchIdIn } from '../launch/sessions.ts';
import { serveDocuments } from './run-documents.ts';
import type { RunEngine } from './run-engine.ts';
import { estimateInWords } from './estimate-words.ts';
import { runViewer } from './run-view.ts';
import type { Run, RunStore } from './run.ts';

/** A check may open files and ask the platform: so many at a time, and of one launch so many that wait. */
const checksAtOnce = 2;
const checksWaiting = 5;
/** The most starts of one user that may wait. Starts are checked one after the other. */
const startsWaiting = 200;

/** Body of `POST api/runs`. */
const newRun = z.strictObject({
  stepId: z.string(),
  parameters: z.record(z.string(), z.unknown()).refine(isShallow, tooDeep).default({}),
  input: runInput.default({ type: 'synthetic', size: 1024 }),
});

/** Query of `GET api/runs`: newest first, those that are older than the run `before`. */
const runPage = z.strictObject({
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be an integer from 1 to 200')
    .transform(Number)
    .refine((n) => n <= 200, 'must be an integer from 1 to 200')
    .default(100),
  before: z.string().max(100).optional(),
});

export interface RunRoutesOptions {
  readonly launches: LaunchStore;
  readonly store: RunStore;
  readonly engine: RunEngine;
  readonly steps: StepHost;
  readonly inputDir: string;
  readonly uploads: OwnUploads;
  /** Address of the platform, for links to its items. */
  readonly platformUrl: string;
}

/** The picture of a run's result. Throws 404 where it has none. */
export async function sendPicture(
  res: Response,
  store: Pick<RunStore, 'picture'>,
  { id }: Pick<Run, 'id'>,
): Promise<void> {
  const found = await store.picture(id);
  if (!found) throw new RequestError(404, 'no_result', 'the run has no result to look at');
  res
    .type('png')
    .set({ 'Cache-Control': 'private, max-age=3600', 'Content-Security-Policy': "default-src 'none'" })
    .send(Buffer.from(found));
}

/** The JSON API of one launch, under `/launches/{launchId}/api`. */
export function runRoutes({
  launches,
  store,
  engine,
  steps,
  inputDir,
  uploads,
  platformUrl,
}: RunRoutesOptions): Router {
  const router = Router({ mergeParams: true });
  const checks = new FairQueue(checksAtOnce);
  const starts = new FairQueue(checksAtOnce);
  const { one: view, all: viewAll } = runViewer({ store, engine, steps });

  /** Calls of the platform that a user sets off wait for those that the user has set off before. */
  async function asked<T>(
    params: object,
    res: Response,
    work: (launchId: string, signal: AbortSignal) => Promise<T>,
    [queue, maxWaiting]: readonly [FairQueue, number] = [checks, checksWaiting],
  ): Promise<T> {
    const launchId = launchIdIn(params);
    const { user } = (await launches.find(launchId)) ?? {};
    const owner = user?.id ?? launchId;
    if (queue.waitingOf(owner) >= maxWaiting)
      throw new RequestError(429, 'too_many_checks', 'wait for the answers to what you have asked for already');
    const gone = new AbortController();
    res.once('close', () => gone.abort(new Error('nobody waits for the answer')));
    return queue.run(owner, () => work(launchId, gone.signal), gone.signal);
  }

  async function findRun(params: { launchId?: string; runId: string }): Promise<Run> {
    const run = await store.find(params.runId);
    if (!run || run.launchId !== launchIdIn(params))
      throw new RequestError(404, 'run_not_found', 'this launch has no such run');
    return run;
  }

  router.get('/launch', async (req, res) => {
    const launch = await launches.find(launchIdIn(req.params));
    res.json({ user: launch?.user ?? {}, createdAt: launch && new Date(launch.createdAtMs).toISOString() });
  });
  router.get('/steps', (_req, res) => {
    const declared = steps.steps.map((step) => ({
      id: step.id,
      version: step.version,
      title: step.title,
      description: step.description,
      parameters: parameterSchema(step),
      /** The first of `inputs` with rasters. */
      input: mainInput(step)?.[1],
      inputs: Object.fromEntries(inputsOf(step)),
      /** The first of `outputs`. */
      output: outputViews(step)[0]?.[1],
      outputs: Object.fromEntries(outputViews(step)),
    }));
    res.json({ steps: declared });
  });
  router.get('/inputs', async (_req, res) => {
    const [inputs, vectors] = await Promise.all([listInputs(inputDir, 'raster'), listInputs(inputDir, 'vector')]);
    res.json({ inputs, vectors });
  });
  router.get('/runs', async (req, res) => {
    const { limit, before } = parseRequest(runPage, req.query);
    const runs = await store.listByLaunch(launchIdIn(req.params), { limit, before });
    // A page that is full may be followed by another.
    res.json({ runs: await viewAll(runs), next: runs.length === limit ? (runs.at(-1)?.id ?? null) : null });
  });
  router.post('/runs', json({ limit: '256kb' }), async (req, res) => {
    const wanted = parseRequest(newRun, req.body);
    const run = await asked(req.params, res, (launchId) => engine.start(launchId, wanted, pageDeadline()), [
      starts,
      startsWaiting,
    ]);
    res.status(201).json(await view(run));
  });
  // Checks a run without asking for approval. Rejects the same requests as the call that asks.
  router.post('/runs/check', json({ limit: '256kb' }), async (req, res) => {
    const { stepId, parameters, input } = parseRequest(newRun, req.body);
    const checked = await asked(req.params, res, async (launchId, gone) => {
      uploads.requireOwn(await launches.find(launchId), input);
      const found = await steps.check(stepId, parameters, input, AbortSignal.any([gone, pageDeadline()]));
      engine.requirePlace(found);
      return found;
    });
    res.json({
      warnings: checked.warnings,
      parameters: checked.parameters,
      estimate: checked.estimate && { ...checked.estimate, inWords: estimateInWords(checked.estimate) },
    });
  });
  router.get('/runs/:runId', async (req, res) => {
    res.json(await view(await findRun(req.params)));
  });
  router.get('/runs/:runId/result', async (req, res) => {
    const { id } = await findRun(req.params);
    const found = await store.summary(id);
    if (!found) throw new RequestError(404, 'no_result', 'the run has no result to look at');
    res.json(found);
  });
  serveDocuments(router, (req) => findRun(req.params), { store, steps, platformUrl });
  router.get('/runs/:runId/picture.png', async (req, res) => {
    await sendPicture(res, store, await findRun(req.params));
  });
  router.post('/runs/:runId/cancel', async (req, res) => {
    res.json(await view(await engine.cancel(await findRun(req.params))));
  });
  router.post('/runs/:runId/retry', async (req, res) => {
    const ended = await findRun(req.params);
    const run = await asked(req.params, res, () => engine.retry(ended, pageDeadline()), [starts, startsWaiting]);
    res.status(201).json(await view(run));
  });
  return router;
}

/** The outputs of a step as JSON. A picture has the style of the default parameters. */
const outputViews = (step: AnyStep) =>
  outputsOf(step).map(([name, output]) => {
    const preview = 'preview' in output ? { preview: previewOf(output, defaultsOf(step)) } : {};
    return [name, { ...output, sourceType: sourceTypeOfOutput(output), ...preview }] as const;
  });
