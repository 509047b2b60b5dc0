import type { Request } from 'express';
import { apiKeyHeader, type Endpoint, type OperationStatus } from '../../contract/index.ts';
import type { Files } from '../uploads/files.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import type { IdentityTokens } from '../identity/identity-tokens.ts';
import type { Launches } from '../marketplace/launches.ts';

/** The operation that a call is about. */
export interface CalledOperation {
  readonly id: string;
  readonly launchId: string;
  readonly status: OperationStatus;
}

export interface CallAttribution {
  /** Null if it is unknown. */
  readonly launchId: string | null;
  /** The operation that the call is about, as far as its head says. Null if it is unknown. */
  readonly operation: CalledOperation | null;
  /** Facts of the call for the referee. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Returns the launch of a call, or null for a call that nobody looks for. */
export type AttributeCall = (endpoint: Endpoint, req: Request) => CallAttribution | null;

export interface CallAttributionOptions {
  readonly keys: Pick<ApiKeys, 'find'>;
  readonly tokens: Pick<IdentityTokens, 'identify'>;
  readonly launches: Pick<Launches, 'newestOf' | 'get'>;
  readonly operations: {
    find(id: string): CalledOperation | null;
    onlyOf(launchId: string): CalledOperation | null;
    newestNaming(names: readonly string[], appId: string | null): CalledOperation | null;
  };
  readonly files: Pick<Files, 'find'>;
  readonly items: { find(collectionId: string, id: string): { readonly id: string; readonly title: string } | null };
}

/**
 * Finds the launch of a call: that of its identity token, even of one that has expired. A call with a token of no launch
 * is nobody's. The launch of a call without a token is that of an operation that names the call's item in its
 * parameters. For an app's own key, it is the launch of the named file, or else the app's newest.
 */
export function createCallAttribution(options: CallAttributionOptions): AttributeCall {
  return (endpoint, req) => {
    // No path of the interface has a wildcard, which would give a list.
    const { token } = req.params as Readonly<Record<string, string>>;
    if (token !== undefined) return ofToken(token, endpoint, req, options);
    const attribution = ofGroup(endpoint, req, options);
    // A catalog page requests dozens of previews. Only those of a launch count.
    return endpoint === 'stac.preview' && attribution.launchId === null ? null : attribution;
  };
}

function ofToken(
  token: string,
  endpoint: Endpoint,
  req: Request,
  { tokens, operations }: CallAttributionOptions,
): CallAttribution | null {
  const caller = tokens.identify(token);
  if (caller === null) return null;
  const { launchId, tokenNumber } = caller;
  return { launchId, operation: operationSoFar(endpoint, req, launchId, operations), detail: { tokenNumber } };
}

/** The operation that a call is about, as far as its head says. It is known then even of a call that fails early. */
function operationSoFar(
  endpoint: Endpoint,
  req: Request,
  launchId: string,
  operations: CallAttributionOptions['operations'],
): CalledOperation | null {
  // The launch's only one. With several, a guess could judge the wrong one.
  if (endpoint.startsWith('upload.')) return operations.onlyOf(launchId);
  const { operationId } = req.query;
  const named =
    endpoint === 'operation.status' && typeof operationId === 'string' ? operations.find(operationId) : null;
  return named?.launchId === launchId ? named : null;
}

function ofGroup(
  endpoint: Endpoint,
  req: Request,
  { keys, launches, operations, files, items }: CallAttributionOptions,
): CallAttribution {
  const { collectionId, id = null, fileId: ofPath } = req.params as Readonly<Record<string, string>>;
  const item =
    endpoint === 'stac.data' && collectionId !== undefined && id !== null ? items.find(collectionId, id) : null;
  const appId = keys.find(req.get(apiKeyHeader) ?? '')?.appId ?? null;
  const operation = item ? operations.newestNaming([item.id, item.title], appId) : null;
  const attribution = { operation, detail: item ? { itemId: item.id } : {} };
  if (operation) return { ...attribution, launchId: operation.launchId };
  if (appId === null) return { ...attribution, launchId: null };
  const fileId = ofPath ?? (endpoint === 'file.status' ? id : req.query['fileId']);
  const file = typeof fileId === 'string' ? files.find(fileId) : null;
  return { ...attribution, launchId: file?.launchId ?? launches.newestOf(appId)?.id ?? null };
}
