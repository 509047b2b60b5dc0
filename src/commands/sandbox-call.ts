import { KitError } from '../contract/index.ts';

/** A call of the sandbox's control API, as JSON. Throws `KitError` with the status in its data where it is refused. */
export async function sandboxCall<T>(sandboxUrl: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${sandboxUrl}/sandbox/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: body ? { 'content-type': 'application/json' } : {},
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new KitError('sandbox_error', `the sandbox answered ${response.status} to ${path}`, { status: response.status });
  return (response.status === 204 ? undefined : await response.json()) as T;
}
