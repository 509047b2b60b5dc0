import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeFolder, runInChild, type Confinement } from '../../raster/index.ts';
import type { SandboxConfig } from '../config.ts';
import type { Fault, Faults } from '../control/faults.ts';
import type { Operations } from '../external-app/operations.ts';
import type { Files } from '../files/files.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Launch } from '../marketplace/launch.ts';
import type { LaunchEvents } from '../marketplace/launch-events.ts';
import type { Trace } from '../referee/trace.ts';
import type { Verdicts } from '../referee/verdicts.ts';
import { newId } from '../secrets.ts';
import type { UploadSessions } from '../uploads/upload-sessions.ts';
import type { Bundle, Cause } from './bundle.ts';
import { afterOf, effectsOf, Labels } from './effects.ts';
import { secretFree } from './secret-free.ts';

const pixelsJob = new URL('../../raster/pixels-digest-job.ts', import.meta.url);
const pixelLimits = { timeoutMs: 60_000, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 2 };
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

export interface BundleOptions {
  readonly config: Pick<SandboxConfig, 'seed'>;
  readonly trace: Trace;
  readonly verdicts: Verdicts;
  readonly events: LaunchEvents;
  readonly faults: Faults;
  readonly operations: Operations;
  readonly uploadSessions: UploadSessions;
  readonly files: Files;
  readonly keys: ApiKeys;
  readonly tokens: IdentityTokens;
  readonly confinement: Confinement;
  readonly blobDir: string;
  readonly workDir: string;
}

/** Writes a launch down as it can be played again: what was done to it, what it did, what came of it. */
export function bundler(options: BundleOptions): (launch: Launch) => Promise<Bundle> {
  const { config, trace, verdicts, events, faults, operations, uploadSessions, files } = options;
  const clean = secretFree((text) => options.keys.find(text) !== null || options.tokens.identify(text) !== null);

  async function pixelsOf(fileId: string): Promise<string | null> {
    const file = files.find(fileId);
    if (file?.facts?.kind !== 'raster') return null;
    const workFolder = join(options.workDir, newId('bundle'));
    return runInChild<string>({
      module: pixelsJob,
      input: null,
      files: [{ path: join(options.blobDir, file.blob), name: file.originalName }],
      workFolder,
      confinement: options.confinement,
      limits: pixelLimits,
      signal: AbortSignal.timeout(pixelLimits.timeoutMs),
    })
      .catch(() => null)
      .finally(() => removeFolder(workFolder));
  }

  return async (launch) => {
    const calls = trace.calls(launch.id);
    const labels = new Labels();
    const effects = effectsOf(calls, labels);
    const obstacles: string[] = [];
    const causes: (Cause & { readonly atMs: number })[] = [];
    for (const created of calls.filter(
      ({ endpoint, detail }) => endpoint === 'operation.create' && detail.operationId,
    )) {
      const operation = operations.find(created.detail.operationId!);
      const isFirst = calls.find(({ detail }) => detail.operationId === operation?.id) === created;
      if (!operation || !isFirst) continue;
      const body = startOf(operation.parameters, obstacles);
      if (body) causes.push({ do: 'start', after: afterOf(calls, created.at), body: clean(body), atMs: created.at });
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
        causes.push({
          do: 'fault',
          fault: { endpoint, effect, after, times },
          fired: armed.get(fault.id)?.fired ?? times,
          ...at,
        });
      } else if (kind === 'faults disarmed')
        obstacles.push('a fault was disarmed: what is armed stays armed when it is played');
    }
    const { verdict } = verdicts.of(launch.id);
    const outputs: Bundle['outputs'][number][] = [];
    for (const { fileId } of uploadSessions.listByLaunch(launch.id).filter((one) => one.fileId !== null)) {
      const file = files.find(fileId!)!;
      outputs.push({
        fileName: clean(file.originalName),
        sourceType: file.sourceType,
        status: file.status,
        pixelsSha256: await pixelsOf(file.id),
      });
    }
    return {
      format: 'marketplace-run/1',
      kit: version,
      seed: config.seed,
      renewPolicy: launch.renewPolicy,
      causes: causes.sort((a, b) => a.atMs - b.atMs).map(({ atMs: _, ...one }) => one),
      effects,
      verdict: Object.fromEntries(verdict.rules.map(({ rule, result }) => [rule, result])),
      outputs,
      obstacles,
    };
  };
}

/** What an app of this kit was asked to run, as its operation tells it; null for another's, which begins by itself. */
function startOf(parameters: unknown, obstacles: string[]): Extract<Cause, { do: 'start' }>['body'] | null {
  const { step, input, ...others } = (parameters ?? {}) as Record<string, unknown>;
  const stepId = typeof step === 'string' ? /^(.+)@[^@]+$/.exec(step)?.[1] : undefined;
  if (stepId === undefined || input === undefined) return null;
  const said = JSON.stringify(input);
  if (said.includes('"type":"local"'))
    obstacles.push('its input was a file of the app’s own folder, which is not here');
  if (said.includes('"uploads-')) obstacles.push('its input was a file that a user had uploaded, which is not here');
  return { stepId, input, parameters: others };
}
