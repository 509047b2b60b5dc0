/** A platform that differs from the sandbox in one thing: a proxy in front of it, which knows nothing of the kit. */
import { createServer, request as forward, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call of the interface, as its address and method tell it. */
export interface Route {
  readonly method: string;
  readonly path: RegExp;
}

export type Change =
  | { readonly kind: 'rename' | 'drop' | 'retype'; readonly on: 'success' | 'error'; readonly field: string }
  | { readonly kind: 'word'; readonly on: 'success'; readonly field: string }
  | { readonly kind: 'status'; readonly on: 'success' | 'error'; readonly status: number }
  | { readonly kind: 'redirect'; readonly on: 'success' }
  | { readonly kind: 'header'; readonly on: 'success' | 'error'; readonly name: string; readonly value: string | null }
  | { readonly kind: 'plain'; readonly on: 'error' }
  | { readonly kind: 'query'; readonly on: 'success'; readonly field: string };

/** The new name of a field. */
export const otherName = (field: string) => `${field.split('.').at(-1)!}_x`;

/** Changes a JSON value at a dotted path; `[]` stands for every entry of a list. */
export function changeAt(value: unknown, path: readonly string[], change: Change): void {
  if (value === null || typeof value !== 'object') return;
  const [name = '', ...rest] = path;
  if (name === '[]') return (value as unknown[]).forEach((one) => changeAt(one, rest, change));
  const object = value as Record<string, unknown>;
  if (!(name in object)) return;
  if (rest.length > 0) return changeAt(object[name], rest, change);
  if (change.kind === 'rename') object[otherName(name)] = object[name];
  if (change.kind === 'rename' || change.kind === 'drop') delete object[name];
  if (change.kind === 'retype') object[name] = retyped(object[name]);
  if (change.kind === 'word') object[name] = 'SOMETHING_ELSE';
}

function retyped(value: unknown): unknown {
  if (typeof value === 'number') return `${value} m`;
  if (typeof value === 'string') return { value };
  if (Array.isArray(value)) return { first: 1 };
  return value === null ? 7 : 'text';
}

export const pathOf = (field: string) => field.split('.').flatMap((name) => (name.endsWith('[]') ? [name.slice(0, -2), '[]'] : [name])).filter((name) => name !== ''); // oxfmt-ignore

/** Starts it; `changes` are all there at once. Its address, and how it ends. */
export async function strangePlatform(sandboxUrl: string, changes: readonly { route: Route; change: Change }[]) {
  const server = createServer((req, res) => {
    void bodyOf(req).then((sent) => {
      const url = new URL(req.url ?? '/', sandboxUrl);
      const own = changes.filter(({ route }) => route.method === req.method && route.path.test(url.pathname));
      let body = sent;
      for (const { change } of own) {
        if (change.kind !== 'query') continue;
        url.searchParams.delete(change.field);
        if (body.length > 0 && /json/.test(req.headers['content-type'] ?? '')) {
          const json = parsed(body) as Record<string, unknown>;
          delete json[change.field];
          body = Buffer.from(JSON.stringify(json));
        }
      }
      const headers = { ...req.headers, host: url.host, 'content-length': String(body.length) };
      if (req.method === 'GET') delete (headers as Record<string, unknown>)['content-length'];
      const passed = forward(url, { method: req.method, headers, agent: false }, (answer) => {
        void bodyOf(answer).then((content) => {
          const isSuccess = answer.statusCode! >= 200 && answer.statusCode! < 300;
          let [status, out] = [answer.statusCode!, content];
          const told: Record<string, string | string[] | undefined> = { ...answer.headers };
          for (const { change } of own) {
            if ((change.on === 'success') !== isSuccess) continue;
            if (change.kind === 'status') status = change.status;
            else if (change.kind === 'redirect') [status, out, told['location']] = [302, Buffer.alloc(0), '/elsewhere'];
            else if (change.kind === 'header') {
              if (change.value === null) delete told[change.name];
              else told[change.name] = change.value;
            } else if (change.kind === 'plain')
              [out, told['content-type']] = [Buffer.from('It did not work'), 'text/plain'];
            else if (change.kind !== 'query' && /json/.test(String(told['content-type']))) {
              const json = parsed(out);
              changeAt(json, pathOf(change.field), change);
              out = Buffer.from(JSON.stringify(json));
            }
          }
          delete told['transfer-encoding'];
          delete told['etag'];
          told['content-length'] = String(out.length);
          res.writeHead(status, told).end(out);
        });
      });
      passed.on('error', () => res.destroy());
      passed.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  };
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return {};
  }
}
