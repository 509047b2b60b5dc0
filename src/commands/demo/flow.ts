import { writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import type { AppDefinition } from '../../app/definition/app-definition.ts';
import type { RunView } from '../../app/runs/run-view.ts';
import { assumedLimits, assumedProfile } from '../../contract/index.ts';
import { createPlatformClient } from '../../platform-client/index.ts';
import {
  confinementSettings,
  confinementVariables,
  establishConfinement,
  runInChild,
  type Confinement,
} from '../../child/index.ts';
import { previewJob, type PreviewJobInput, type PreviewStyle } from '../../raster/index.ts';
import { outputsOf, previewOf } from '../../steps/step.ts';
import { openLaunch, typedParameters, type AppSession, type FoundItem } from '../../testing/app-session.ts';
import { sandboxCall } from '../../testing/sandbox-call.ts';
import { sandboxControl, type SandboxControl } from '../../testing/sandbox-control.ts';
import { comparePlace } from './compare-place.ts';
import { fetchFile, waitForFile } from './fetch-result.ts';
import type { DemoOptions } from './options.ts';
import type { Report } from './report.ts';

/** Options of a demo, and the app that it runs. */
export interface Demo extends DemoOptions {
  readonly stepId: string;
  readonly definition: AppDefinition;
}

/** A running sandbox, a running app, and the inputs of one demo. */
export interface DemoPlace {
  readonly sandbox: { readonly url: string; readonly apiKey: string };
  readonly app: { readonly url: string };
  /** Folder of the user's rasters in the app's input folder, and the collection to which the sandbox imports them. */
  readonly scene: string;
  readonly stagedFiles: number;
  /** Folder for intermediate files. */
  readonly folder: string;
}

const followEveryMs = 150;
const previewSide = 512;
const maxItems = 200;
/** Demo collection for each kind of input. */
const demoCollections: Readonly<Record<string, string>> = {
  multispectral: 'olinda-coast',
  elevation: 'jacksboro-fault',
  radar: 'harbour-radar',
};

/** Runs the whole flow, from the launch to the comparison of the delivered file. Returns 0 if the result fits the decision. */
export async function flow(options: Demo, place: DemoPlace, report: Report): Promise<number> {
  const control = sandboxControl({ url: place.sandbox.url });
  const { id, name, description } = options.definition;
  const { launchId, launchUrl } = await control.launch(`${place.app.url}/launch`, { app: { id, name, description } });
  const session = await openLaunch(launchUrl);
  report.line('launched           by the marketplace, with a fresh identity token');
  const input = await chooseInput(options, session, place, report);
  const run = await startAndFollow(options, input, session, control, launchId, report);
  report.end();
  if (run.state !== 'COMPLETED') return refused(options, run, await countUploadCalls(control, launchId), report);
  const { userId } = await sandboxCall(place.sandbox, 'getLaunch', { launchId });
  return deliver(options, run, userId, place.sandbox, place.folder, report);
}

/** Chooses the input of the run: all of the user's own items, or the newest demo item of the step's kind. */
async function chooseInput(
  options: Demo,
  session: AppSession,
  { stagedFiles, scene, sandbox }: DemoPlace,
  report: Report,
): Promise<object> {
  const names = Object.keys(options.namedInputs);
  if (names.length > 0) {
    report.line(`input              ${names.join(', ')}, from the app's own folder`);
    return {
      type: 'named',
      inputs: Object.fromEntries(names.map((name) => [name, { type: 'local', path: name }])),
    };
  }
  if (stagedFiles === 0) {
    const step = session.steps.find(({ id }) => id === options.stepId);
    if (Object.keys(step?.inputs ?? {}).length > 1) {
      report.line('input              synthetic: the step has several inputs, and each is made by code');
      return { type: 'synthetic', size: 512 };
    }
    const kind = step?.input?.synthetic ?? 'multispectral';
    const items = await session.searchItems({
      collections: [demoCollections[kind] ?? demoCollections['multispectral']],
      limit: 1,
    });
    return platformInput(items, report);
  }
  const items = await session.searchItems({ collections: [scene], limit: maxItems });
  if ((await countImportedFiles(sandbox, scene)) === stagedFiles) return platformInput(items, report);
  report.line(
    "input              from the app's own folder: the catalog does not read all of it, because it is not georeferenced or not a raster",
  );
  return { type: 'local', path: scene };
}

/** Counts the imported files. The files of a scene are one item, which lists them. */
async function countImportedFiles({ url, apiKey }: DemoPlace['sandbox'], scene: string): Promise<number> {
  const response = await fetch(`${url}/public/stac/collections/${scene}/items?limit=${maxItems}`, {
    headers: { 'x-api-key': apiKey },
  });
  // The kit's own sandbox answers this.
  const { features = [] } = (await response.json()) as { features?: { properties: { 'import:files'?: string[] } }[] };
  return features.reduce((sum, { properties }) => sum + (properties['import:files']?.length ?? 0), 0);
}

function platformInput(items: readonly FoundItem[], report: Report): object {
  report.line(
    `input              ${items.map(({ collectionId, itemId }) => `${collectionId}/${itemId}`).join(' ')}  by search in the platform's catalog`,
  );
  return { type: 'platform', items: items.map(({ collectionId, itemId }) => ({ collectionId, itemId })) };
}

/** Starts the run, decides its operation as the user would, and follows the run to its end. */
async function startAndFollow(
  options: Demo,
  input: object,
  session: AppSession,
  control: SandboxControl,
  launchId: string,
  report: Report,
): Promise<RunView> {
  const step = session.steps.find(({ id }) => id === options.stepId);
  let run = await session.startRun({
    stepId: options.stepId,
    parameters: typedParameters(step, options.parameters),
    input,
  });
  let decided = false;
  for (;;) {
    report.run(run);
    if (run.isFinal) return run;
    if (run.state === 'AWAITING_APPROVAL' && !decided && run.operationId) {
      decided = true;
      await decide(options, control, run.operationId, launchId);
      report.line(
        {
          approve: '  the user approves',
          reject: '  the user rejects',
          expire: '  nobody decides for 30 minutes (the sandbox clock moves)',
        }[options.decision],
      );
    }
    await sleep(followEveryMs);
    run = await session.run(run.id);
  }
}

async function decide(
  { decision, definition }: Demo,
  control: SandboxControl,
  operationId: string,
  launchId: string,
): Promise<void> {
  const { operationWindowMs } = definition.profile?.limits ?? assumedLimits;
  if (decision === 'expire') await control.advance(operationWindowMs, launchId);
  else await control[decision](operationId);
}

async function countUploadCalls(control: SandboxControl, launchId: string): Promise<number> {
  return (await control.trace(launchId)).filter(({ endpoint }) => endpoint.startsWith('upload.')).length;
}

/** Fetches the platform's files and compares them with the outputs of the step. Returns 0 only if each file is COMPLETED and equal. */
async function deliver(
  options: Demo,
  run: RunView,
  userId: string,
  platform: { url: string; apiKey: string },
  folder: string,
  report: Report,
): Promise<number> {
  const step = options.definition.steps.find(({ id }) => id === run.step.id);
  const declared = step ? outputsOf(step).map(([, output]) => output) : [];
  const client = createPlatformClient({
    baseUrl: platform.url,
    apiKey: platform.apiKey,
    profile: options.definition.profile,
  });
  let isWell = run.files.length > 0;
  const collectionId = (options.definition.profile ?? assumedProfile).uploadsCollection(userId);
  for (const [i, { fileId, fileName: deliveredName, output: fileName = deliveredName }] of run.files.entries()) {
    const made = run.outputs[i];
    if (!fileId || !made) {
      report.line('the platform did not name the file that it made: the demo cannot fetch it back');
      isWell = false;
      continue;
    }
    const status = await waitForFile(client, fileId);
    report.line(`platform's file    ${status}`);
    const fetched = await fetchFile(client, fileId, options.outDir, fileName);
    const equal = fetched.sha256 === made.sha256 && fetched.sizeBytes === made.sizeBytes;
    const output = declared.find((declaration) => declaration.fileName === fileName);
    const preview =
      output &&
      'preview' in output &&
      (await draw(fetched.path, fileName, previewOf(output, run.parameters), join(folder, `preview-${i}`)));
    const place = status === 'COMPLETED' ? await comparePlace(client, { collectionId, fileId }, run, step) : null;
    const lines = [
      '',
      `name               ${deliveredName}`,
      `file id            ${fileId}`,
      `size               ${fetched.sizeBytes} bytes`,
      `sha256 of output   ${made.sha256}`,
      `sha256 fetched     ${fetched.sha256}  ${equal ? 'equal' : 'NOT EQUAL'}`,
      ...(place?.lines ?? []),
      `output             ${fetched.path}`,
      ...(preview ? [`preview            ${preview}`] : []),
      '',
    ];
    process.stdout.write(lines.map((text) => `${text}\n`).join(''));
    isWell &&= status === 'COMPLETED' && equal && (place?.isRight ?? true);
  }
  client.close();
  return isWell ? 0 : 1;
}

/** Draws a raster as a picture in the same folder. Returns the path of the picture. */
async function draw(path: string, fileName: string, style: PreviewStyle, workFolder: string): Promise<string> {
  const preview = join(dirname(path), `${parse(fileName).name}.png`);
  const input: PreviewJobInput = { maxSide: previewSide, style };
  const png = await runInChild<Uint8Array>({
    module: previewJob,
    input,
    files: [{ path, name: fileName }],
    workFolder,
    confinement: await confinementOfDemo(),
  });
  await writeFile(preview, png);
  return preview;
}

/** Confinement with the settings of the servers. It prints no warning, because the servers already did. */
function confinementOfDemo(): Promise<Confinement> {
  const { data: read = { CONFINEMENT_READS: [] } } = z.object(confinementVariables).safeParse(process.env);
  return establishConfinement({ ...confinementSettings(process.env, read), warn: () => {} });
}

/** Reports a run without output. Returns 0 if the decision was to reject or expire it, and no upload call was made. */
function refused(options: Demo, run: RunView, uploadCalls: number, report: Report): number {
  if (run.failure) {
    report.line(`failed: ${run.failure.message}`);
    report.line(run.failure.advice);
    if (run.failure.stack !== undefined) report.line(run.failure.stack);
    return 1;
  }
  const processed = run.history.some(({ state }) => state === 'PROCESSING');
  report.line(
    `${processed ? 'PROCESSED ALL THE SAME' : 'nothing was processed'}, ${uploadCalls} calls of the upload group`,
  );
  const expected = { approve: 'COMPLETED', reject: 'REJECTED', expire: 'EXPIRED' }[options.decision];
  return run.state === expected && !processed && uploadCalls === 0 ? 0 : 1;
}
