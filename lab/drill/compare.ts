import type { RunState } from '../../src/app/runs/run-state.ts';
import type { DrillPlatform, Violation } from './platform.ts';
import type { DrillResult } from './drill.ts';
import type { RunFacts, Stop, World } from './world.ts';

/** Judged by answers as the platform gave them, which the proxy, or a kill of the app, may have kept from it. */
const ofWhatWasHeard = ['poll-stops'];

/** Longest time that a call may be under way around a stop, in milliseconds. */
const callLastsMs = 5_000;
const toldLength = 1_000;

/** A chunk that a stopped process was sending ends when that goes on; meanwhile another has the run, and may send the chunk again and complete. */
function isOfStop({ calls }: Violation, stops: readonly Stop[]): boolean {
  const [first, last] = [calls.at(0), calls.at(-1)].map((call) => Date.parse(call?.at ?? ''));
  return stops.some(
    ({ fromMs, toMs }) => Math.abs(first! - fromMs) < callLastsMs && last! > fromMs && last! < toMs + callLastsMs,
  );
}

/** Is something wrong already, while runs are under way? Less than `compare` finds, and nothing that it does not. */
export async function hasFault(world: World, launchId: string): Promise<boolean> {
  const { platform, stops, unexpectedEnds } = world;
  if (unexpectedEnds.length > 0 || (await world.runs()).some(({ state }) => state === 'FAILED')) return true;
  const [operations, uploads] = [await platform.operations(), await platform.uploads(launchId)];
  // Counted after the operations: each was asked for by a run that is there by now.
  if (operations.length > (await world.runs()).length) return true;
  const done = uploads.filter(({ fileId }) => fileId !== null).map(({ operationId }) => operationId);
  if (new Set(done).size < done.length) return true;
  return (await violationsOf(platform, launchId, stops)).length > 0;
}

/** Violations by the app that the referee has found. */
async function violationsOf(platform: DrillPlatform, launchId: string, stops: readonly Stop[]) {
  return (await platform.failedRules(launchId)).flatMap(({ rule, violations }) => {
    const ofTheApp = ofWhatWasHeard.includes(rule)
      ? []
      : violations.filter((one) => rule !== 'chunk-order' || !isOfStop(one, stops));
    return ofTheApp.length > 0 ? [{ rule, violations: ofTheApp }] : [];
  });
}

/** Every run against the platform: one operation, no upload unless approved, one file, its bytes; and the referee's verdict. */
export async function compare(
  runs: readonly RunFacts[],
  platform: DrillPlatform,
  launchId: string,
  stops: readonly Stop[],
): Promise<Omit<DrillResult, 'counts' | 'did'>> {
  const faults: string[] = [];
  const [operations, uploads, calls] = [
    await platform.operations(),
    await platform.uploads(launchId),
    await platform.calls(launchId),
  ];
  if (operations.length !== runs.length) faults.push(`${runs.length} runs made ${operations.length} operations`);
  let bytesCompared = 0;
  for (const run of runs) {
    const operation = operations.find(({ operationId }) => operationId === run.operationId);
    const own = uploads.filter(({ operationId }) => operationId === run.operationId);
    const files = own.flatMap(({ fileId }) => fileId ?? []);
    const wanted = operation?.status === 'APPROVED' ? 'COMPLETED' : operation?.status;
    if (run.state !== wanted)
      faults.push(
        `run ${run.id} is ${run.state}, its operation ${operation?.status ?? 'not there'}${run.failure === null ? '' : `: ${run.failure}`}`,
      );
    if (run.state !== 'COMPLETED') {
      const uploadCalls = calls.filter(
        ({ endpoint, detail }) => endpoint.startsWith('upload.') && detail['operationId'] === run.operationId,
      );
      if (run.operationId !== null && uploadCalls.length > 0)
        faults.push(`run ${run.id} is ${run.state}, and ${uploadCalls.length} upload calls were made`);
      continue;
    }
    if (files.length !== 1) faults.push(`run ${run.id} made ${files.length} files`);
    const [output, file] = [run.outputs, run.files].map(
      (json) => (JSON.parse(json ?? '[]') as { sha256?: string; sizeBytes?: number; fileId?: string }[])[0],
    );
    if (file?.fileId !== files[0])
      faults.push(`run ${run.id} names file ${file?.fileId}, the platform has ${files[0]}`);
    if (files[0] !== undefined && (await platform.sha256(files[0])) !== output?.sha256)
      faults.push(`run ${run.id}: the platform's file has other bytes`);
    bytesCompared += output?.sizeBytes ?? 0;
  }
  for (const { rule, violations } of await violationsOf(platform, launchId, stops))
    faults.push(`the referee: ${rule}: ${JSON.stringify(violations).slice(0, toldLength)}`);
  const states: Partial<Record<RunState, number>> = {};
  for (const { state } of runs) states[state] = (states[state] ?? 0) + 1;
  const files = uploads.filter(({ fileId }) => fileId !== null).length;
  return {
    runs: runs.length,
    states,
    faults,
    operations: operations.length,
    files,
    bytesCompared,
    abandonedSessions: uploads.length - files,
  };
}
