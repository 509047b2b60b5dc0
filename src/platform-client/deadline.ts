/** An end in time for one call, beside whatever else may end it. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** True if the time limit ended the call. */
  readonly isOver: boolean;
  /** Something moved: the time begins anew. */
  restart(): void;
  /** The call is over: nothing is held any longer. */
  clear(): void;
}

/**
 * Works like `AbortSignal.any([signal, AbortSignal.timeout(ms)])`, but holds no answered call in memory. With that
 * expression, each of thousands of calls stays there until its time is up.
 */
export function startDeadline(timeoutMs: number, signal?: AbortSignal): Deadline {
  const controller = new AbortController();
  let isOver = false;
  const onAbort = () => controller.abort(signal?.reason);
  const timer = setTimeout(() => {
    isOver = true;
    controller.abort(new Error('the time is up'));
  }, timeoutMs);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    get isOver() {
      return isOver;
    },
    restart: () => void timer.refresh(),
    clear() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}
