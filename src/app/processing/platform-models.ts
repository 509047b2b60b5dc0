import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { geoJSONToWkt } from 'betterknown';
import type { Geometry } from 'geojson';
import * as z from 'zod';
import { inferenceState, KitError, sourceType, type WireLimits } from '../../contract/index.ts';
import { abortableSleep, type PlatformClient } from '../../platform-client/index.ts';
import { requirePlainFile, copyPlainFile } from '../../files/index.ts';
import { areaSchema } from '../../steps/area.ts';
import type { AnyStep } from '../../steps/step.ts';
import { fileGroupCalls } from '../upload/file-group-calls.ts';
import { uploadFile } from '../upload/uploader.ts';

/** Maximum number of model requests in one run. */
const maxQuestions = 100;
/** Time for which a model that was found counts as present. */
const knownMs = 60_000;

/** Request of a step to a model. A child may send anything, so this schema checks it. The file must be in the child's own folder. */
export const modelQuestion = z.strictObject({
  type: z.literal('run-model'),
  modelId: z.string().min(1).max(200),
  /** In the child's folder itself. */
  fileName: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/),
  sourceType,
  area: areaSchema({}).nullable(),
});
export type ModelQuestion = z.output<typeof modelQuestion>;

export interface ModelRunOptions {
  readonly signal: AbortSignal;
  /** Called with a sentence about the current activity. */
  readonly onNote: (note: string) => void;
  readonly retryWhileDown: <T>(call: () => Promise<T>) => Promise<T>;
}

/** Models that the platform runs (spec 4.7) on a step's files. */
export interface PlatformModels {
  /** Throws `KitError` (400) where the platform has not all of them. */
  require(modelIds: readonly string[], signal?: AbortSignal): Promise<void>;
  /**
   * Takes the file out of `stepFolder`, uploads it, runs the model on it, and writes what comes out to `resultPath`, of at most `maxBytes`. The
   * file stays on the platform: the interface knows no call that removes one. Throws `KitError` (422) where the job
   * fails, `DownloadError`, or `PlatformError`.
   */
  run(
    question: ModelQuestion,
    place: {
      readonly stepFolder: string;
      readonly ownFolder: string;
      readonly resultPath: string;
      readonly maxBytes: number;
    },
    options: ModelRunOptions,
  ): Promise<void>;
}

export interface PlatformModelsOptions {
  readonly client: Pick<
    PlatformClient,
    | 'listModels'
    | 'generateUploadId'
    | 'uploadFileChunk'
    | 'completeFileUpload'
    | 'runInference'
    | 'getInferenceStatus'
    | 'downloadInference'
  >;
  readonly limits: Pick<WireLimits, 'chunkBytes' | 'maxPartNumber'>;
  readonly uploadPartBytes: number;
  readonly pollIntervalMs: number;
}

export function createPlatformModels({
  client,
  limits,
  uploadPartBytes,
  pollIntervalMs,
}: PlatformModelsOptions): PlatformModels {
  let knownIds: ReadonlySet<string> = new Set();
  let knownUntil = 0;

  /** Gives the file's id. */
  async function upload(
    path: string,
    { fileName, sourceType }: ModelQuestion,
    { signal, onNote, retryWhileDown }: ModelRunOptions,
  ): Promise<string> {
    const { size } = await stat(path);
    const { fileId } = await uploadFile(
      { operationId: '', path, fileName, sourceType, sizeBytes: size, resume: null },
      {
        calls: fileGroupCalls(client),
        partSizeBytes: uploadPartBytes,
        limits,
        // A run that begins anew uploads anew.
        save: async () => {},
        onProgress: (sent) => onNote(`uploading the model's input, ${Math.round((100 * sent) / size)} %`),
        signal,
        retryWhileDown,
      },
    );
    if (fileId === undefined) throw new KitError('internal_error', 'the platform gave the uploaded file no id');
    return fileId;
  }

  async function untilDone(
    jobId: string,
    modelId: string,
    { signal, onNote, retryWhileDown }: ModelRunOptions,
  ): Promise<void> {
    for (;;) {
      await abortableSleep(pollIntervalMs, signal);
      const { status } = await retryWhileDown(() => client.getInferenceStatus(jobId, { signal }));
      const state = inferenceState(status);
      if (state === 'done') return;
      if (state === 'failed')
        throw new KitError(
          'model_failed',
          `the platform's model ${modelId} failed on this input: it may take other bands, or other values, than those that it was sent`,
          { status: 422 },
        );
      onNote(
        state === 'waiting'
          ? `waiting for the platform's model ${modelId}`
          : `the platform's model ${modelId} is at work (${status.slice(0, 40)})`,
      );
    }
  }

  return {
    async require(modelIds, signal) {
      if (performance.now() < knownUntil && modelIds.every((id) => knownIds.has(id))) return;
      const known = await client.listModels({ signal });
      [knownIds, knownUntil] = [new Set(known.map(({ id }) => id)), performance.now() + knownMs];
      const missing = modelIds.filter((id) => !known.some((model) => model.id === id));
      if (missing.length === 0) return;
      throw new KitError(
        'model_not_there',
        `the platform has no model ${missing.join(', ')}; it has ${known.map(({ id }) => id).join(', ') || 'none'}`,
        { status: 400 },
      );
    },

    async run(question, { stepFolder, ownFolder, resultPath, maxBytes }, options) {
      const { signal, retryWhileDown } = options;
      const path = join(ownFolder, question.fileName);
      await copyPlainFile(join(stepFolder, question.fileName), path);
      const { size } = await stat(path);
      if (size > maxBytes)
        throw new KitError(
          'input_too_large',
          `the step sends more to the platform's models than the ${maxBytes} bytes that a run's input may have (INPUT_MAX_BYTES)`,
          { status: 422 },
        );
      const fileId = await upload(path, question, options);
      await rm(path);
      // Copies the area, because the converter takes arrays that it could change.
      const geometry = question.area
        ? { geometry: geoJSONToWkt(structuredClone<unknown>(question.area) as Geometry) }
        : {};
      const { id } = await retryWhileDown(() =>
        client.runInference({ modelId: question.modelId, fileId, ...geometry }, { signal }),
      );
      await untilDone(id, question.modelId, options);
      await retryWhileDown(() =>
        client.downloadInference({ inferenceJobId: id, path: resultPath, maxBytes }, { signal }),
      );
    },
  };
}

export interface ModelDesk {
  /** Folder of the results, which the child reads. */
  readonly results: string;
  /** Answers a question of the step's child: with the path of a result in `results`. */
  answer(question: unknown, signal: AbortSignal): Promise<string>;
}

/** Passes requests of a step's process to the platform's models. Accepts `maxQuestions` requests, and only models that the step declares. */
export async function openModelService(
  models: PlatformModels | null,
  step: Pick<AnyStep, 'id' | 'platformModels'>,
  folders: { readonly stepFolder: string; readonly ownFolder: string; readonly maxBytes: number },
  options: Omit<ModelRunOptions, 'signal'>,
): Promise<ModelDesk> {
  const results = join(folders.ownFolder, 'results');
  await mkdir(results, { recursive: true });
  // A child may run as another user. The folders above are the server's alone.
  await chmod(results, 0o755);
  let asked = 0;
  let bytesLeft = folders.maxBytes;
  return {
    results,
    async answer(given, signal) {
      const question = modelQuestion.parse(given);
      const broken = (what: string) =>
        new KitError('step_broke_its_declaration', `step ${step.id} ${what}`, { status: 500 });
      if (!step.platformModels?.includes(question.modelId))
        throw broken(`runs the model ${question.modelId}, which its platformModels do not name`);
      if (!models)
        throw new KitError('no_platform', 'the step runs a model of the platform, and there is no platform here', {
          status: 422,
        });
      if (asked === maxQuestions) throw broken(`runs models more than ${maxQuestions} times`);
      const resultPath = join(results, `result-${asked++}`);
      await models.run(question, { ...folders, resultPath, maxBytes: bytesLeft }, { ...options, signal });
      bytesLeft -= await requirePlainFile(resultPath);
      await chmod(resultPath, 0o644);
      return resultPath;
    },
  };
}
