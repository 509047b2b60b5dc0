import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Axios } from 'axios';
import { proxyFor } from './proxy.ts';

const http = new Axios({
  adapter: 'http',
  httpAgent: new HttpAgent(),
  httpsAgent: new HttpsAgent(),
  maxRedirects: 0,
  responseType: 'stream',
  validateStatus: () => true,
});

/** The status of a GET without key and token, by the way that calls go. Rejects if nobody answers within `timeoutMs`. */
export async function reach(url: string, timeoutMs: number): Promise<number> {
  const { status, data } = await http.get<{ destroy(): void }>(url, {
    signal: AbortSignal.timeout(timeoutMs),
    ...proxyFor(new URL(url).hostname),
  });
  data.destroy();
  return status;
}
