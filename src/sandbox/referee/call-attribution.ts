import type { Request } from 'express';
import { apiKeyHeader, type Endpoint, type OperationStatus } from '../../contract/index.ts';
import type { Files } from '../uploads/files.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import type { Launches } from '../marketplace/launches.ts';

/** The operation that a call is about. */
export interface CalledOperation {
  readonly id: string;
  readonly launchId: string;
  readonly status: OperationStatus;
}

export interface CallAttribution {
  /** Null where nobody knows. */
  readonly launchId: string | null;
  /** The operation that asked for the item, where one did. */
  readonly operation: CalledOperation | null;
  readonly itemId: string | null;
}

export type AttributeCall = (endpoint: Endpoint, req: Request) => CallAttribution;

export interface CallAttributionOptions {
  readonly keys: Pick<ApiKeys, 'find'>;
  readonly launches: Pick<Launches, 'newestOf' | 'get'>;
  readonly operations: { newestNaming(names: readonly string[], appId: string | null): CalledOperation | null };
  readonly files: Pick<Files, 'find'>;
  readonly items: { find(collectionId: string, id: string): { readonly id: string; readonly title: string } | null };
}

/**
 * Finds the launch of a call without an identity token. If an operation names the call's item in its parameters, this is
 * the operation's launch. For an app's own key, it is the launch of the named file, or else the app's newest.
 */
export function createCallAttribution({
  keys,
  launches,
  operations,
  files,
  items,
}: CallAttributionOptions): AttributeCall {
  return (endpoint, req) => {
    // No path of the interface has a wildcard, which would give a list.
    const { collectionId, id = null, fileId: ofPath } = req.params as Readonly<Record<string, string>>;
    const item =
      endpoint === 'stac.data' && collectionId !== undefined && id !== null ? items.find(collectionId, id) : null;
    const appId = keys.find(req.get(apiKeyHeader) ?? '')?.appId ?? null;
    const operation = item ? operations.newestNaming([item.id, item.title], appId) : null;
    const whose = { operation, itemId: item?.id ?? null };
    if (operation) return { ...whose, launchId: operation.launchId };
    if (appId === null) return { ...whose, launchId: null };
    const fileId = ofPath ?? (endpoint === 'file.status' ? id : req.query['fileId']);
    const file = typeof fileId === 'string' ? files.find(fileId) : null;
    return { ...whose, launchId: file?.launchId ?? launches.newestOf(appId)?.id ?? null };
  };
}
