/** The peer of `bench/waiting.ts`: asks for the status of each operation again and again, and does nothing else, with Node's fetch or with the HTTP client that the app uses. */
import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import axios from 'axios';

const { url, apiKey, intervalMs, client, operations } = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as {
  url: string;
  apiKey: string;
  intervalMs: number;
  client: 'fetch' | 'axios';
  operations: { token: string; operationId: string }[];
};

const headers = { 'X-API-KEY': apiKey };
const http = axios.create({ baseURL: url, headers, httpAgent: new Agent({ keepAlive: true }), maxRedirects: 0 });

async function status(token: string, operationId: string): Promise<string> {
  const path = `/public/external-app/operation/${token}`;
  const body =
    client === 'axios'
      ? (await http.get<unknown>(path, { params: { operationId } })).data
      : await (await fetch(`${url}${path}?operationId=${operationId}`, { headers })).json();
  return (body as { status?: string }).status ?? `no status: ${JSON.stringify(body).slice(0, 200)}`;
}

async function poll({ token, operationId }: { token: string; operationId: string }): Promise<void> {
  await sleep(Math.random() * intervalMs);
  for (;;) {
    // A server may close a connection just as it is used again: asked the next time, as nobody waits for this answer.
    const seen = await status(token, operationId).catch(() => 'REQUESTED');
    // This measures waiting. A loop that ends would be measured as cheap.
    if (seen !== 'REQUESTED') throw new Error(`an operation that nobody decides is ${seen}`);
    await sleep(intervalMs * (0.9 + 0.2 * Math.random()));
  }
}

console.log(`bare-poll ready ${url}`);
await Promise.all(operations.map(poll));
