import { env } from 'node:process';
import { isLoopbackName } from '../contract/index.ts';

/**
 * Proxy setting of axios for calls to this host: `proxy: false` for no proxy, `{}` for the proxy in the environment
 * (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`). This machine's own addresses are never asked of a proxy: it
 * could not reach them, and it would read the API key.
 */
export function proxyFor(hostname: string): { readonly proxy?: false } {
  const isNamed = Object.keys(env).some((name) => /_proxy$/i.test(name));
  return isNamed && !isLoopbackName(hostname) ? {} : { proxy: false };
}
