import { bareHttp } from './bare-http.ts';
import { proxyFor } from './proxy.ts';

/** Returns the status of a GET without key and token, through the same proxy as calls. Rejects after `timeoutMs`. */
export async function reach(url: string, timeoutMs: number): Promise<number> {
  const { status, data } = await bareHttp.get<{ destroy(): void }>(url, {
    signal: AbortSignal.timeout(timeoutMs),
    ...proxyFor(new URL(url).hostname),
  });
  data.destroy();
  return status;
}
