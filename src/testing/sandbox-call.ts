import { KitError } from '../contract/index.ts';

/** Address of a sandbox, and the key to its control API if it needs one. */
export interface SandboxAddress {
  readonly url: string;
  readonly adminKey?: string | undefined;
}

/** A call of the sandbox's control API, as JSON. Throws `KitError` with the status in its data where it is refused. */
export async function sandboxCall<T>(
  sandbox: SandboxAddress,
  path: string,
  body?: object,
  method = body ? 'POST' : 'GET',
): Promise<T> {
  const response = await fetch(`${sandbox.url}/sandbox/${path}`, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(sandbox.adminKey && { 'x-admin-key': sandbox.adminKey }),
    },
    body: body ? JSON.stringify(body) : null,
  });
  if (!response.ok)
    throw new KitError('sandbox_error', `the sandbox answered ${response.status} to ${path}`, {
      status: response.status,
    });
  // The kit's own sandbox answers this.
  return (response.status === 204 ? undefined : await response.json()) as T;
}
