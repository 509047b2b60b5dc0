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

const isInteger = (value: number | undefined): value is number => Number.isInteger(value);

/** Returns the effects of calls, oldest first, without details that differ from run to run. */
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
      ...(isInteger(partNumber) ? { partNumber } : {}),
      ...(isInteger(size) ? { size } : {}),
      ...(isInteger(fileSize) ? { fileSize } : {}),
      ...(tokenNumber !== undefined ? { tokenNumber } : {}),
      ...(code !== undefined ? { code } : {}),
      ...(foreign !== undefined ? { foreign } : {}),
      ...(detail.fault !== undefined ? { isFaulted: true as const } : {}),
    };
  });
}

/** The last effect before a moment; null where there was none. */
export function afterOf(calls: readonly TracedCall[], atMs: number): Cause['after'] {
  const ended = calls.filter(({ endedAt }) => endedAt <= atMs).sort((a, b) => a.endedAt - b.endedAt);
  const endpoint = ended.at(-1)?.endpoint;
  return endpoint === undefined ? null : { endpoint, nth: ended.filter((one) => one.endpoint === endpoint).length };
}
