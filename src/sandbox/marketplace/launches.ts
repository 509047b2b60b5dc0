import type { Statement } from 'better-sqlite3';
import * as z from 'zod';
import { isPathSegment, launchItemFields, type AppManifest } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import type { IdentityTokens, IssuedToken } from '../identity/identity-tokens.ts';
import type { Users } from '../identity/users.ts';
import { countOf } from '../rows.ts';
import { newId } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';
import type { Apps } from './apps.ts';
import type { LaunchEvents } from './launch-events.ts';
import { renewPolicies, type Launch } from '../identity/launch.ts';

const identifier = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine(isPathSegment, 'must be an identifier');

/** Body of `POST /sandbox/launches`. */
export const newLaunch = z
  .strictObject({
    appId: z.string().optional(),
    userId: z.string().optional(),
    renewPolicy: z.enum(renewPolicies, 'must be extend or rotate').default('extend'),
    /** Item of the catalog that the user launches the app from. Default: none. */
    collectionId: identifier.optional(),
    itemId: identifier.optional(),
  })
  .refine(({ collectionId, itemId }) => (collectionId === undefined) === (itemId === undefined), {
    path: ['itemId'],
    error: 'must come together with collectionId',
  });

interface LaunchRow {
  id: string;
  app_id: string;
  user_id: string;
  renew_policy: Launch['renewPolicy'];
  created_at: number;
  revoked_at: number | null;
}

/** Launches of apps by users. Each has one identity token at a time and a clock of its own. */
export class Launches {
  #database: SandboxDatabase;
  /** Asked for each row of every list: prepared once. */
  #byId: Statement<[string], LaunchRow>;
  #clock: SandboxClock;
  #tokens: IdentityTokens;
  #apps: Apps;
  #users: Users;
  #events: LaunchEvents;
  /** In which a launch's address holds the token. */
  readonly tokenField: string;

  constructor(
    database: SandboxDatabase,
    clock: SandboxClock,
    tokens: IdentityTokens,
    apps: Apps,
    users: Users,
    events: LaunchEvents,
    tokenField: string,
  ) {
    this.#database = database;
    this.#byId = database.prepare<[string], LaunchRow>('select * from launches where id = ?');
    this.#clock = clock;
    this.#tokens = tokens;
    this.#apps = apps;
    this.#users = users;
    this.#events = events;
    this.tokenField = tokenField;
  }

  /** Mints a token for (app, user, launch). Without ids: the first app and the first user. */
  create(wanted: z.output<typeof newLaunch>): {
    launch: Launch;
    app: AppManifest;
    issued: IssuedToken;
    launchUrl: string;
  } {
    const app = wanted.appId === undefined ? this.#apps.list()[0] : this.#apps.find(wanted.appId);
    const user = wanted.userId === undefined ? this.#users.list()[0] : this.#users.find(wanted.userId);
    if (!app) throw new SandboxError('app_not_found');
    if (!user) throw new SandboxError('user_not_found');
    const launch: Launch = {
      id: newId('launch'),
      appId: app.id,
      userId: user.id,
      renewPolicy: wanted.renewPolicy,
      createdAtMs: this.#clock.now(),
      revokedAtMs: null,
    };
    const issued = this.#database.transaction(() => {
      this.#database
        .prepare('insert into launches (id, app_id, user_id, renew_policy, created_at) values (?, ?, ?, ?, ?)')
        .run(launch.id, launch.appId, launch.userId, launch.renewPolicy, launch.createdAtMs);
      this.#events.note(launch.id, 'launched', `${app.name}, by ${user.name}`);
      return this.#tokens.issue(launch);
    })();
    return {
      launch,
      app,
      issued,
      launchUrl: launchAddress(app, { [this.tokenField]: issued.token, ...itemOf(wanted) }),
    };
  }

  /** Throws 404 `launch_not_found`. */
  get(id: string): Launch {
    const row = this.#byId.get(id);
    if (!row) throw new SandboxError('launch_not_found');
    return fromRow(row);
  }

  /** Newest first. `appId`: launches of this app. Default: of all apps. */
  listNewest(limit: number, skip = 0, appId: string | null = null): Launch[] {
    return this.#database
      .prepare<[{ appId: string | null; limit: number; skip: number }], LaunchRow>(
        'select * from launches where @appId is null or app_id = @appId order by created_at desc, rowid desc limit @limit offset @skip',
      )
      .all({ appId, limit, skip })
      .map(fromRow);
  }

  /** Returns the newest launch of an app; null if there was none. */
  newestOf(appId: string): Launch | null {
    const row = this.#database
      .prepare<[string], LaunchRow>(
        'select * from launches where app_id = ? order by created_at desc, rowid desc limit 1',
      )
      .get(appId);
    return row ? fromRow(row) : null;
  }

  /** Default: counts the launches of all apps. */
  count(appId: string | null = null): number {
    return countOf(this.#database, 'select count(*) from launches where @appId is null or app_id = @appId', { appId });
  }

  /** Ends a launch: all its tokens are revoked. */
  revoke(id: string): void {
    const launch = this.get(id);
    this.#tokens.revokeAll(launch.id);
    const { changes } = this.#database
      .prepare('update launches set revoked_at = ? where id = ? and revoked_at is null')
      .run(this.#clock.now(id), id);
    if (changes > 0) this.#events.note(id, 'revoked', 'the session has ended; the sandbox refuses its tokens');
  }
}

function fromRow(row: LaunchRow): Launch {
  return {
    id: row.id,
    appId: row.app_id,
    userId: row.user_id,
    renewPolicy: row.renew_policy,
    createdAtMs: row.created_at,
    revokedAtMs: row.revoked_at,
  };
}

/** In `query` mode the address that a browser opens; in `form_post` mode the address that a form is posted to. */
function launchAddress(app: AppManifest, fields: Readonly<Record<string, string>>): string {
  const url = new URL(app.launchUrl);
  if (app.launchMode === 'query') for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  return url.href;
}

/** Fields of a launch from an item. Empty for other launches. */
export const itemOf = ({ collectionId, itemId }: z.output<typeof newLaunch>): Record<string, string> =>
  collectionId === undefined || itemId === undefined
    ? {}
    : { [launchItemFields.collectionId]: collectionId, [launchItemFields.itemId]: itemId };
