import { join } from 'node:path';
import { runInChild, type Confinement } from '../../child/index.ts';
import { isRecord, kitVersion, removeFolder } from '../../files/index.ts';
import type { SandboxConfig } from '../config.ts';
import { isOfLaunch, type Fault } from '../control/fault.ts';
import type { Faults } from '../control/faults.ts';
import type { Operations } from '../external-app/operations.ts';
import type { FileRecord, Files } from '../files/files.ts';
import type { Launch } from '../marketplace/launch.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import { newId } from '../secrets.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import { bundleFormat, type Bundle, type Cause } from './bundle.ts';
import { afterOf, effectsOf, Labels } from './effects.ts';
import { collectInputs, localObstacle, localPathsOf, type InputStores } from './inputs.ts';

const digestJob = new URL('../../raster/content-digest-job.ts', import.meta.url);
const pixelLimits = { timeoutMs: 60_000, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3 };

export interface BundleOptions extends InputStores {
  readonly config: Pick<SandboxConfig, 'seed'>;
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly events: LaunchEvents;
  readonly faults: Faults;
  readonly operations: Operations;
  readonly uploadSessions: UploadSessions;
  readonly files: Files;
  /** Takes out whatever is a key or a token. */
  readonly redact: <T>(value: T) => T;
  readonly confinement: Confinement;
  readonly workDir: string;
}

/** Writes a launch down as it can be played again: what was done to it, what it did, what came of it. */
export function bundler(options: BundleOptions): (launch: Launch) => Promise<Bundle> {
  const { config, trace, verdicts, events, faults, operations, uploadSessions, files } = options;
  const clean = options.redact;
  const pathOf = ({ blob }: FileRecord) => join(options.blobDir, blob);

  /** Computes the digest of a file's content; `unread` if the child cannot read the file. */
  async function makeDigest(file: FileRecord, kind: 'raster' | 'vector'): Promise<string> {
    const workFolder = join(options.workDir, newId('bundle'));
    return runInChild<string>({
      module: digestJob,
      input: kind,
      files: [{ path: pathOf(file), name: file.originalName }],
      workFolder,
      confinement: options.confinement,
      limits: pixelLimits,
      signal: AbortSignal.timeout(pixelLimits.timeoutMs),
    })
      .catch(() => 'unread' as const)
      .finally(() => removeFolder(workFolder));
  }

  return async (launch) => {
    // Those that carry the token: which others are known to be the launch's hangs on the app's key.
    const calls = trace.calls(launch.id).filter(({ endpoint }) => isOfLaunch(endpoint));
    const labels = new Labels();
    const effects = effectsOf(calls, labels);
    const obstacles: string[] = [];
    const causes: (Cause & { readonly atMs: number })[] = [];
    let previousMs = 0;
    for (const created of calls.filter(({ endpoint }) => endpoint === 'operation.create')) {
      const { operationId } = created.detail;
      const operation = operationId ? operations.find(operationId) : null;
      const isFirst = calls.find(({ detail }) => detail.operationId === operation?.id) === created;
      if (!operation || !isFirst) continue;
      const body = startOf(operation.parameters);
      if (!body) continue;
      // The first try of it may have been answered by a fault: what begins with the start is no sign of it.
      const firstTry = calls.find(({ endpoint, at }) => endpoint === 'operation.create' && at >= previousMs) ?? created;
      previousMs = created.endedAt;
      const signs = calls.filter(({ endpoint }) => endpoint !== 'operation.create' && endpoint !== 'token.renew');
      causes.push({ do: 'start', after: afterOf(signs, firstTry.at), body: clean(body), atMs: firstTry.at });
    }
    const armed = new Map<string, Fault>(faults.list().map((fault) => [fault.id, fault]));
    for (const { kind, atMs, movedMs, data } of events.list(launch.id)) {
      const at = { after: afterOf(calls, atMs), atMs };
      const { operationId, fault } = data;
      const operation = operationId === undefined ? null : labels.of('operation', operationId);
      if ((kind === 'approved' || kind === 'rejected') && operation !== null)
        causes.push({ do: kind === 'approved' ? 'approve' : 'reject', operation, ...at });
      else if (kind === 'clock moved') causes.push({ do: 'advance', ms: movedMs, ...at });
      else if (kind === 'revoked') causes.push({ do: 'revoke', ...at });
      else if (kind === 'fault armed' && fault) {
        const { endpoint, effect, after, times } = fault;
        if (!isOfLaunch(endpoint)) {
          obstacles.push(`a fault at ${endpoint}: calls without a token belong to no launch`);
          continue;
        }
        causes.push({
          do: 'fault',
          fault: { endpoint, effect, after, times },
          fired: armed.get(fault.id)?.fired ?? times,
          ...at,
        });
      } else if (kind === 'faults disarmed')
        obstacles.push('a fault was disarmed: what is armed stays armed when it is played');
    }
    const starts = causes.flatMap((one) => (one.do === 'start' ? [one.body] : []));
    const given = await collectInputs(starts, options);
    obstacles.push(...given.obstacles);
    for (const path of localPathsOf({ causes })) obstacles.push(localObstacle(path));
    const struck = effects.filter(({ isFaulted }) => isFaulted).length;
    const told = causes.reduce((sum, one) => sum + (one.do === 'fault' ? one.fired : 0), 0);
    if (struck > told)
      obstacles.push('calls were struck by what is no cause of this launch: a rate limit, or a fault for every launch');
    // After its token is revoked, a launch waits for nothing.
    const isRevoked = causes.some((one) => one.do === 'revoke');
    if (!isRevoked && operations.page(1, { isWaiting: true, launchId: launch.id }).length > 0)
      obstacles.push('an operation waits for a decision: the run has not ended');
    const { verdict } = verdicts.of(launch.id);
    const outputs: Bundle['outputs'][number][] = [];
    for (const { fileId } of uploadSessions.listByLaunch(launch.id)) {
      // A reset may take files while those before them are read.
      const file = fileId === null ? null : files.find(fileId);
      if (!file) continue;
      const kind = file.facts?.kind;
      const pixels = kind === 'raster' ? await makeDigest(file, kind) : null;
      const features = kind === 'vector' ? await makeDigest(file, kind) : null;
      if (pixels === 'unread') obstacles.push(`the pixels of ${clean(file.originalName)} could not be read`);
      if (file.status === 'QUEUED' || file.status === 'IN_PROGRESS') obstacles.push('an output is not processed yet');
      outputs.push({
        fileName: clean(file.originalName),
        sourceType: file.sourceType,
        status: file.status,
        pixelsSha256: pixels === 'unread' ? null : pixels,
        contentSha256: kind === 'raster' ? null : features === null || features === 'unread' ? file.sha256 : features,
      });
    }
    return {
      format: bundleFormat,
      kit: kitVersion,
      seed: config.seed,
      renewPolicy: launch.renewPolicy,
      inputs: given.inputs.map((one) => ({ ...clean({ ...one, data: null }), sha256: one.sha256, data: one.data })),
      causes: causes.sort((a, b) => a.atMs - b.atMs).map(({ atMs: _, ...one }) => one),
      effects,
      verdict: Object.fromEntries(verdict.rules.map(({ rule, result }) => [rule, result])),
      outputs,
      obstacles,
    };
  };
}

/** Reads the requested run from the operation of an app of this kit; null for other apps, which start by themselves. */
function startOf(parameters: unknown): Extract<Cause, { do: 'start' }>['body'] | null {
  const { step, input, ...others }: Record<string, unknown> = isRecord(parameters) ? parameters : {};
  const stepId = typeof step === 'string' ? /^(.+)@[^@]+$/.exec(step)?.[1] : undefined;
  if (stepId === undefined || input === undefined) return null;
  return { stepId, input, parameters: others };
}
