import type { RequestListener } from 'node:http';

interface Layer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
  readonly handle: { readonly stack?: readonly Layer[] };
  readonly rawPath: string | readonly string[];
}

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the parameters as they are declared, such as `/launches/:launchId/api/runs/:runId`. */
  readonly path: string;
}

/** Every route of an Express application, from its own stack. */
export function routesOf(handler: RequestListener): Route[] {
  return walk((handler as unknown as { router: { stack: readonly Layer[] } }).router.stack, '');
}

function walk(stack: readonly Layer[], prefix: string): Route[] {
  return stack.flatMap(({ route, handle, rawPath }): Route[] => {
    if (route)
      return Object.keys(route.methods).map((method) => ({
        method: method.toUpperCase() as Route['method'],
        path: prefix + route.path,
      }));
    if (!handle.stack) return [];
    if (typeof rawPath !== 'string') throw new Error('a router mounted at several addresses: say here what is wanted');
    return walk(handle.stack, prefix + (rawPath === '/' ? '' : rawPath));
  });
}
