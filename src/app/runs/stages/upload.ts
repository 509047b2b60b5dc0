import { basename } from 'node:path';
import type { CompletedUpload, CompletionField } from '../../../contract/index.ts';
import { deliveredName, nameOfSource } from '../../processing/delivered-name.ts';
import { resultFacts, type ResultFacts } from '../../processing/result-facts.ts';
import { completeWithoutFile, uploadFile, UploadError, type CompletionFacts } from '../../upload/uploader.ts';
import { outputsOf } from '../../../steps/step.ts';
import type { Run, RunFile, RunOutput } from '../run.ts';
import { requireOperation } from './await-decision.ts';
import { commitTransition } from './retry.ts';
import type { Stage, StageContext } from './stage.ts';
import { codeOf } from '../../../files/index.ts';

/**
 * UPLOADING to COMPLETED: one output after the other, from the first part that was not acknowledged; back to PROCESSING
 * where an output is gone or is not the one the upload began with, and the platform has not all of it.
 */
export const uploadOutputs: Stage = async (run, context) => {
  let current = run;
  const files: RunFile[] = [];
  // A worker without the step cannot describe its outputs, so a worker that has the step makes them again.
  if (!context.steps.steps.some(({ id }) => id === run.stepId))
    return context.store.transition(run, 'PROCESSING', { outputs: [], upload: null });
  let number: number | null = null;
  for (const output of run.outputs) {
    const known = run.files.find((file) => isOf(file, output));
    if (known) {
      files.push(known);
      continue;
    }
    const save = async (facts: Partial<Pick<Run, 'upload' | 'files'>>) => {
      current = await context.store.record(current, facts);
      context.patience.progressed();
    };
    const facts = factsOf(current, output, context);
    number ??= await numberAmongOwn(run, context);
    const name = deliveredName(basename(output.path), { input: run.input, ...facts }, number);
    const completed = await uploadOne(current, { ...output, name, facts }, context, save);
    if (!completed) break;
    files.push({
      fileId: completed.fileId ?? null,
      // An upload that an earlier process began has the name that it was begun with.
      fileName: completed.originalName ?? name,
      output: basename(output.path),
      sizeBytes: completed.size ?? output.sizeBytes,
      sha256: output.sha256,
    });
    if (files.length < run.outputs.length) await save({ files, upload: null });
  }
  if (run.outputs.length > 0 && files.length === run.outputs.length)
    return commitTransition(context, current, 'COMPLETED', { files });
  context.madeHere.identities = new Map();
  const waysBack = await countWaysBack(run, context);
  if (waysBack === maxWaysBack)
    throw new UploadError('output_changed', `an output was missing or had changed ${maxWaysBack + 1} times in a row`);
  context.log.warn({ waysBack }, 'an output is missing or has changed, processing again');
  return context.store.transition(current, 'PROCESSING', { outputs: [], upload: null });
};

/** Times that one run goes back from UPLOADING to PROCESSING. */
const maxWaysBack = 3;

/** Counts by the run's history, which other workers have written too. */
async function countWaysBack({ id }: Run, { store }: StageContext): Promise<number> {
  const stages = await store.stages(id);
  return stages.filter(({ state, outcome }) => state === 'UPLOADING' && outcome === 'PROCESSING').length;
}

/** True if the platform has this exact output. An output that was made again may differ. */
const isOf = ({ output, fileName, sha256 }: RunFile, made: RunOutput) =>
  (output ?? fileName) === basename(made.path) && sha256 === made.sha256;

const factsOf = (run: Run, { path, descriptions }: RunOutput, { steps }: StageContext): ResultFacts =>
  resultFacts(
    steps.find(run.stepId),
    { fileName: basename(path), ...(descriptions && { descriptions }) },
    run.provenance,
  );

/** The number of the run, from 1, among those of its user's day whose results could have the same name. */
async function numberAmongOwn(run: Run, { store, steps }: StageContext): Promise<number> {
  const namesOf = (stepId: string) => {
    const step = steps.steps.find(({ id }) => id === stepId);
    return [`${stepId}.zip`, ...(step ? outputsOf(step).map(([, { fileName }]) => fileName) : [])];
  };
  const own = new Set(namesOf(run.stepId));
  const source = nameOfSource(run.input);
  const earlier = await store.beganBefore(run);
  return (
    earlier.filter((pick) => nameOfSource(pick.input) === source && namesOf(pick.stepId).some((name) => own.has(name)))
      .length + 1
  );
}

/** Null where neither this disk nor the platform has all of it. */
async function uploadOne(
  run: Run,
  output: RunOutput & { readonly name: string; readonly facts: ResultFacts },
  context: StageContext,
  save: (facts: Pick<Run, 'upload'>) => Promise<void>,
): Promise<CompletedUpload | null> {
  const { sizeBytes, path, name: fileName } = output;
  const resume = run.upload;
  const { sourceType, ...known } = output.facts;
  const facts = omit(known, context.settings.refusedFields);
  const options = {
    calls: context.calls,
    signal: context.signal,
    onFactsRefused: (error: unknown) =>
      context.log.warn({ err: error }, 'the platform refused the facts of an output, which was completed without them'),
  };
  const identity = context.madeHere.identities.get(path) ?? (await context.folders.verify(output, context.signal));
  if (identity === null) return completeWithoutFile({ sizeBytes, sourceType, facts, resume }, options);
  const which =
    run.outputs.length > 1
      ? `${run.outputs.findIndex((runOutput) => runOutput.path === path) + 1} of ${run.outputs.length}`
      : '';
  const uploaded = uploadFile(
    { operationId: requireOperation(run), path, sizeBytes, identity, fileName, sourceType, facts, resume },
    {
      ...options,
      partSizeBytes: context.settings.uploadPartBytes,
      limits: context.settings.limits,
      save: (upload) => save({ upload }),
      onProgress: (sent) =>
        context.report({
          fraction: sent / sizeBytes,
          note: which ? `uploading ${basename(path)}, ${which}` : 'uploading the output',
          bytes: { sent, total: sizeBytes },
        }),
    },
  );
  return uploaded.catch((error: unknown) => {
    if (isOutputGone(error)) return null;
    throw error;
  });
}

const omit = (facts: CompletionFacts, refused: readonly CompletionField[]): CompletionFacts =>
  Object.fromEntries(Object.entries(facts).filter(([name]) => !refused.some((field) => field === name)));

/** True if the output was removed or changed after it was measured. */
function isOutputGone(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ENOENT' || (error instanceof UploadError && code === 'output_changed');
}
