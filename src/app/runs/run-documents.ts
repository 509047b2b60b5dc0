import { basename } from 'node:path';
import type { Request, Response, Router } from 'express';
import { stacItem } from '../processing/stac-item.ts';
import type { StepHost } from '../processing/step-host.ts';
import { RequestError } from '../web/errors.ts';
import { deliveredAs, provDocument } from './prov-document.ts';
import type { Run, RunStore } from './run.ts';

type RunRequest = Request<{ runId: string; outputName?: string }>;

export interface RunDocumentsOptions {
  readonly store: Pick<RunStore, 'history'>;
  readonly steps: Pick<StepHost, 'find'>;
  /** Address of the platform, for links to its items. */
  readonly platformUrl: string;
}

/**
 * Serves documents about a run: `runs/{id}/prov` (W3C PROV as JSON) and `runs/{id}/items/{outputName}` (the STAC item of an
 * output, by its name in the step's declaration). 404 `no_output` before the run has outputs.
 */
export function serveDocuments(
  router: Router,
  findRun: (req: RunRequest) => Promise<Run>,
  { store, steps, platformUrl }: RunDocumentsOptions,
): void {
  router.get('/runs/:runId/prov', async (req: RunRequest, res) => {
    const run = await findRun(req);
    const document = provDocument(run, await store.history(run.id));
    if (document === null) throw new RequestError(404, 'no_output', 'the run has no outputs yet');
    send(res, `${run.stepId}.prov.json`, 'application/json', document);
  });
  router.get('/runs/:runId/items/:outputName', async (req: RunRequest, res) => {
    const run = await findRun(req);
    const { outputName = '' } = req.params;
    const output = run.outputs.find(({ path }) => basename(path) === outputName);
    if (!output || run.provenance === null)
      throw new RequestError(404, 'no_output', `the run has no output ${JSON.stringify(outputName)}`);
    const name = deliveredAs(run, outputName);
    const item = stacItem(steps.find(run.stepId), output, run.provenance, {
      outputName,
      href: `./${name}`,
      id: name.replace(/\.[^.]+$/, ''),
      madeAt: new Date(run.createdAtMs).toISOString(),
      platformUrl,
    });
    send(res, `${name}.json`, 'application/geo+json', item);
  });
}

/** A browser saves it as a file. */
function send(res: Response, fileName: string, mediaType: string, document: object): void {
  // The file name sets a type too.
  res
    .attachment(fileName)
    .type(mediaType)
    .send(JSON.stringify(document, null, 2));
}
