import type { RequestHandler } from 'express';
import { apiKeyHeader, callGroups, neededPermissions, type CallFacts, type Permission } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { hashSecret, newId, newSecret } from '../secrets.ts';
import { contextOf } from '../web/call-context.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import { ownJson } from '../../files/index.ts';

export interface ApiKey {
  readonly id: string;
  readonly permissions: readonly Permission[];
  /** The app whose own it is: its calls are told apart by it. Null for anybody's. */
  readonly appId: string | null;
  readonly createdAtMs: number;
}

/** Permissions of a key, and those that calls with it needed since the process started. */
export interface KeyUse {
  readonly granted: readonly Permission[];
  readonly used: readonly Permission[];
  /** Needed, and not granted: these calls were answered with 403. */
  readonly denied: readonly Permission[];
}

/** API keys: shown once when made, hashed at rest. */
export class ApiKeys {
  #database: SandboxDatabase;
  #byHash;
  /** Those that calls have come with, by hash: every call brings one. Nothing else writes them. */
  #known = new Map<string, ApiKey>();
  #uses = new Map<string, { used: Set<Permission>; denied: Set<Permission> }>();
  #now: () => number;

  constructor(database: SandboxDatabase, now: () => number) {
    this.#database = database;
    this.#byHash = database.prepare<[string], KeyRow>('select * from api_keys where key_hash = ?');
    this.#now = now;
  }

  create(granted: readonly Permission[], appId: string | null = null): { id: string; apiKey: string } {
    const apiKey = newSecret();
    return { id: this.#keep(apiKey, granted, appId), apiKey };
  }

  /** Makes `apiKey` a key with these permissions, whatever it had. */
  admit(apiKey: string, granted: readonly Permission[]): void {
    const known = this.find(apiKey);
    if (!known) this.#keep(apiKey, granted);
    else {
      this.#known.clear();
      this.#database.prepare('update api_keys set permissions = ? where id = ?').run(JSON.stringify(granted), known.id);
    }
  }

  /** Notes that a call with the key needed a permission. */
  noteUse({ id, permissions: granted }: ApiKey, permission: Permission): void {
    const use = this.#uses.get(id) ?? { used: new Set(), denied: new Set() };
    this.#uses.set(id, use);
    (granted.includes(permission) ? use.used : use.denied).add(permission);
  }

  /** Null for an unknown key. */
  useOf(apiKey: string): KeyUse | null {
    const key = this.find(apiKey);
    if (!key) return null;
    const { used = [], denied = [] } = this.#uses.get(key.id) ?? {};
    return { granted: key.permissions, used: [...used], denied: [...denied] };
  }

  find(apiKey: string): ApiKey | null {
    const hash = hashSecret(apiKey);
    const known = this.#known.get(hash);
    if (known) return known;
    const row = this.#byHash.get(hash);
    if (!row) return null;
    const key = fromRow(row);
    this.#known.set(hash, key);
    return key;
  }

  list(): ApiKey[] {
    return this.#database.prepare<[], KeyRow>('select * from api_keys order by created_at, id').all().map(fromRow);
  }

  /** False where there is no such key. */
  revoke(id: string): boolean {
    this.#known.clear();
    return this.#database.prepare('delete from api_keys where id = ?').run(id).changes === 1;
  }

  #keep(apiKey: string, granted: readonly Permission[], appId: string | null = null): string {
    const id = newId('key');
    this.#database
      .prepare('insert into api_keys values (?, ?, ?, ?, ?)')
      .run(id, hashSecret(apiKey), JSON.stringify(granted), this.#now(), appId);
    return id;
  }
}

interface KeyRow {
  id: string;
  key_hash: string;
  permissions: string;
  created_at: number;
  app_id: string | null;
}

function fromRow(row: KeyRow): ApiKey {
  return {
    id: row.id,
    permissions: ownJson<Permission[]>(row.permissions),
    appId: row.app_id,
    createdAtMs: row.created_at,
  };
}

/** Keys that calls may come with. */
export type KnownKeys = Pick<ApiKeys, 'find'> & Partial<Pick<ApiKeys, 'noteUse'>>;

/**
 * Requires an API key with one of the permissions that the call needs. A missing or unknown key is answered as the group
 * of the call says (spec 5, 7), a missing permission with 403 `Permission Denied`.
 */
export function requireApiKey(
  keys: KnownKeys,
  call: Pick<CallFacts, 'group' | 'permissions' | 'takesBearer'>,
): RequestHandler {
  const permissions = neededPermissions(call);
  const bearerOf = (header = '') => (call.takesBearer ? /^Bearer +(\S+)$/i.exec(header)?.[1] : undefined);
  return (req, res, next) => {
    const key = keys.find(req.get(apiKeyHeader) ?? bearerOf(req.get('authorization')) ?? '');
    if (!key) throw new SandboxError(callGroups[call.group].unknownKey);
    const needed = permissions.find((permission) => key.permissions.includes(permission)) ?? permissions[0];
    if (needed !== undefined) {
      keys.noteUse?.(key, needed);
      if (!key.permissions.includes(needed)) throw new SandboxError('permission_denied');
    }
    contextOf(res).keyOfApp = key.appId;
    next();
  };
}
