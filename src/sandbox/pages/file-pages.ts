import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Router } from 'express';
import * as z from 'zod';
import { classesOfLabels, legendName } from '../../raster/index.ts';
import { fileStatuses, limits, sourceTypes } from '../../contract/index.ts';
import { codeOf } from '../../files/index.ts';
import { iso } from '../clock.ts';
import type { FileRecord, Files } from '../uploads/files.ts';
import type { InferenceJobs } from '../inference/inference-jobs.ts';
import type { Model } from '../inference/models.ts';
import type { InferenceRunner } from '../inference/inference-runner.ts';
import { clientGone } from '../web/client-gone.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { sendAsDownload, sendUntrusted } from '../web/untrusted-content.ts';
import type { Catalog } from '../stac/catalog.ts';
import type { ItemRecord } from '../stac/items.ts';
import type { ItemSources } from '../stac/item-sources.ts';
import { realScenes, viewItem } from './catalog-browser.ts';
import { pageOf, withoutEmpty } from './list-page.ts';
import type { RenderPage } from './page.ts';

/** Query of the list of files. */
const filesQuery = z.object({
  text: z.string().max(200).optional(),
  sourceType: z.enum(sourceTypes).optional(),
  status: z.enum(fileStatuses).optional(),
});
const maxShown = 100;
/** Scenes that the page offers to models. */
const maxScenes = 20;
const filesPerPage = 50;
/** Files that are told to be no input for a model. */
const maxUnfit = 10;

/** The classes of a model in the colours that its results have. */
function classesOf({ labels, colors }: Model): { name: string; color: readonly number[]; note: string }[] {
  return classesOfLabels(labels, colors).map((rasterClass) => ({
    name: legendName(rasterClass),
    color: rasterClass.color,
    note: String(rasterClass.value),
  }));
}

function whyUnfit({ status, facts, reason }: FileRecord): string {
  if (status === 'FAILED') return reason ?? 'could not be read';
  if (status !== 'COMPLETED') return 'is still in processing';
  return facts?.vector ? 'holds vectors, and models take rasters' : 'is no raster';
}
const previewSide = 1024;

const isOneRaster = ({ source }: ItemRecord): boolean =>
  source.kind === 'shipped' ||
  source.kind === 'synthetic' ||
  (source.kind === 'path' && source.isRaster) ||
  (source.kind === 'scene' && source.files.length === 1);

export interface FilePagesOptions {
  readonly files: Files;
  readonly catalog: Catalog;
  readonly models: ReadonlyMap<string, Model>;
  readonly jobs: InferenceJobs;
  readonly sources: ItemSources;
  readonly runner: Pick<InferenceRunner, 'resultPath'>;
  /** Reason why no model can run; null if models can. */
  readonly unavailable: string | null;
  /** Reason why uploaded files are not inspected; null if they are. */
  readonly uninspected: string | null;
  readonly render: RenderPage;
}

/** `/files` and `/inference`: uploads and what became of them, and models run on them. */
export function filePages({
  files,
  sources,
  catalog,
  models,
  jobs,
  runner,
  unavailable,
  uninspected,
  render,
}: FilePagesOptions): Router {
  const router = Router();
  const viewFile = (file: FileRecord) => {
    const item = catalog.items.findByFile(file.id);
    return {
      id: file.id,
      name: file.originalName,
      size: file.size,
      sourceType: file.sourceType,
      status: file.status,
      reason: file.reason,
      mediaType: file.mediaType,
      createdAt: iso(file.createdAtMs),
      item: item && viewItem(item),
    };
  };
  router.get('/files', (req, res) => {
    // The page ignores an invalid query from a hand-made address.
    const asked = filesQuery.safeParse(withoutEmpty(req.query)).data ?? {};
    const page = pageOf(req.query, files.count(asked), filesPerPage);
    const shown = files.listNewest(page.size, page.skip, asked).map(viewFile);
    render(res, 'files', { files: shown, page, sourceTypes, statuses: fileStatuses, asked, uninspected });
  });
  /** A scene of one raster, which the page copies to the user's files before a model runs on it. */
  const viewScene = (item: ItemRecord) => {
    const bands: unknown = item.properties['eo:bands'];
    return {
      name: viewItem(item).title,
      sourceType: item.properties['source_type'] ?? 'UNKNOWN',
      bandCount: Array.isArray(bands) ? bands.length : 0,
      href: `/inference/scenes/${encodeURIComponent(item.collectionId)}/${encodeURIComponent(item.id)}`,
    };
  };
  /** Scenes of one raster whose file can be uploaded in one request. */
  async function scenesForModels() {
    const scenes = (await realScenes(catalog, maxShown)).filter(isOneRaster).slice(0, maxScenes);
    const sizes = await Promise.all(scenes.map((item) => sources.sizeOf(item)));
    return scenes
      .filter((_, i) => (sizes[i] ?? 0) <= limits.directUploadBytes)
      .map(viewScene)
      .filter(({ bandCount }) => bandCount > 0);
  }
  router.get('/inference/scenes/:collectionId/:itemId', async (req, res) => {
    const item = catalog.items.find(req.params.collectionId, req.params.itemId);
    const [raster] = item && isOneRaster(item) ? await sources.files(item) : [];
    if (!raster) throw new SandboxError('item_not_found', { message: 'There is no such scene of one raster' });
    // The reader may have left while the scene was made.
    if (res.destroyed) return;
    sendAsDownload(res, raster.name, 'application/octet-stream');
    await pipeline(createReadStream(raster.path), res).catch((error: unknown) => {
      // A reader that left is no failure.
      if (codeOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    });
  });
  router.get('/inference', async (req, res) => {
    const named = (id: string) => files.find(id)?.originalName ?? id;
    const newest = files.listNewest(maxShown);
    const fitting = newest.filter(({ status, facts }) => status === 'COMPLETED' && facts?.raster !== undefined);
    render(res, 'inference', {
      unavailable,
      models: [...models.values()].map((model) => ({ ...model, classes: classesOf(model) })),
      files: fitting.map((file) => ({ ...viewFile(file), bandCount: file.facts?.raster?.bands.length ?? 0 })),
      scenes: unavailable === null ? await scenesForModels() : [],
      unfit: newest
        .filter((file) => !fitting.includes(file))
        .slice(0, maxUnfit)
        .map((file) => ({ name: file.originalName, why: whyUnfit(file) })),
      jobs: jobs
        .listNewest(maxShown)
        .map((job) => ({ ...job, fileName: named(job.fileId), startedAt: iso(job.startedAtMs) })),
      chosen: typeof req.query['file'] === 'string' ? req.query['file'] : null,
    });
  });
  router.get('/inference/:jobId', (req, res) => {
    const { job, item, model } = resultOf(req.params.jobId);
    render(res, 'inference-result', {
      job: { ...job, fileName: files.find(job.fileId)?.originalName ?? job.fileId },
      classes: model ? classesOf(model) : [],
      item: { ...viewItem(item), previewHref: `/inference/${job.id}/preview.png` },
    });
  });
  router.get('/inference/:jobId/preview.png', async (req, res) => {
    const { job } = resultOf(req.params.jobId);
    const png = await sources.previewOfResult(runner.resultPath(job), previewSide, clientGone(res));
    sendUntrusted(res, 'image/png');
    res.send(Buffer.from(png));
  });

  /** A finished job whose file has a place: its result has the same. */
  function resultOf(jobId: string) {
    const job = jobs.find(jobId);
    const item = job && catalog.items.findByFile(job.fileId);
    if (!job || !item || job.resultName === null)
      throw new SandboxError('inference_job_not_found', { message: 'This job has no result that a map can show' });
    return { job, item, model: models.get(job.modelId) };
  }
  return router;
}
