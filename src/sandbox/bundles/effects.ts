import type { PlatformEndpoint } from '../platform-endpoints.ts';
import type { TracedCall } from '../referee/traced-call.ts';
import type { Cause, Effect } from './bundle.ts';

/** Names ids by the order in which they come: `operation:1`. */
export class Labels {
  #known = new Map<string, string>();
  #counts = new Map<string, number>();

  of(kind: 'operation' | 'upload', id: string): string {
    const key = `${kind} ${id}`;
    const known = this.#known.get(key);
    if (known) return known;
    const n = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, n);
    this.#known.set(key, `${kind}:${n}`);
    return `${kind}:${n}`;
  }
}

/** What calls did, oldest first; of each what does not differ from run to run. */
export function effectsOf(calls: readonly TracedCall[], labels: Labels): Effect[] {
  return calls.map(({ endpoint, status, delivered, detail }): Effect => {
    const { operationId, uploadId, operationStatus, partNumber, size, fileSize, tokenNumber, code, foreign } = detail;
    const isMine = foreign === undefined;
    return {
      endpoint,
      status,
      delivered,
      ...(operationId !== undefined && isMine ? { operation: labels.of('operation', operationId) } : {}),
      ...(uploadId !== undefined && isMine ? { upload: labels.of('upload', uploadId) } : {}),
      ...(operationStatus !== undefined ? { operationStatus } : {}),
      ...(Number.isInteger(partNumber) ? { partNumber: partNumber! } : {}),
      ...(Number.isInteger(size) ? { size: size! } : {}),
      ...(Number.isInteger(fileSize) ? { fileSize: fileSize! } : {}),
      ...(tokenNumber !== undefined ? { tokenNumber } : {}),
      ...(code !== undefined ? { code } : {}),
      ...(foreign !== undefined ? { foreign } : {}),
      ...(detail.fault !== undefined ? { isFaulted: true as const } : {}),
    };
  });
}

/** How many calls of each endpoint had ended by then. */
export function endedBy(calls: readonly TracedCall[], atMs: number): Map<PlatformEndpoint, number> {
  const counts = new Map<PlatformEndpoint, number>();
  for (const { endpoint, endedAt } of calls) if (endedAt <= atMs) counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  return counts;
}

/** The last effect before a moment; null where there was none. */
export function afterOf(calls: readonly TracedCall[], atMs: number): Cause['after'] {
  const last = calls
    .filter(({ endedAt }) => endedAt <= atMs)
    .reduce<TracedCall | null>(
      (latest, call) => (latest === null || call.endedAt >= latest.endedAt ? call : latest),
      null,
    );
  return last === null ? null : { endpoint: last.endpoint, nth: endedBy(calls, atMs).get(last.endpoint)! };
}
