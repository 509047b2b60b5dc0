import { createHash } from 'node:crypto';
import { Store, type SessionData } from 'express-session';
import type { AppDatabase } from '../database.ts';
import { ownJson } from '../../files/index.ts';

/** The lifetime of a browser's session in milliseconds: as long as a launch's token can (contract, "Tokens"). */
export const sessionLifetimeMs = 12 * 3_600_000;

/** The store of browsers' sessions: a store of express-session, which forgets what has expired when it is asked to. */
export interface SessionStore extends Store {
  sweep(): Promise<void>;
}

/** Sessions in the app's database, under the hash of their id, so that a restart signs nobody out and a copy of the database signs nobody in. */
export class SqlSessionStore extends Store implements SessionStore {
  #database: AppDatabase;
  #now: () => number;

  constructor(database: AppDatabase, now: () => number) {
    super();
    this.#database = database;
    this.#now = now;
  }

  override get(sid: string, callback: (error: unknown, session?: SessionData | null) => void): void {
    this.#database
      .selectFrom('sessions')
      .select('data')
      .where('id', '=', hashId(sid))
      .where('expires_at', '>', this.#now())
      .executeTakeFirst()
      .then((row) => callback(null, row ? ownJson<SessionData>(row.data) : null), callback);
  }

  override set(sid: string, session: SessionData, callback: (error?: unknown) => void = () => {}): void {
    const row = { id: hashId(sid), data: JSON.stringify(session), expires_at: this.#now() + sessionLifetimeMs };
    this.#database
      .insertInto('sessions')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ data: row.data }))
      .execute()
      .then(() => callback(), callback);
  }

  override destroy(sid: string, callback: (error?: unknown) => void = () => {}): void {
    this.#database
      .deleteFrom('sessions')
      .where('id', '=', hashId(sid))
      .execute()
      .then(() => callback(), callback);
  }

  /** Removes what has expired. */
  async sweep(): Promise<void> {
    await this.#database.deleteFrom('sessions').where('expires_at', '<=', this.#now()).execute();
  }
}

function hashId(sid: string): string {
  return createHash('sha256').update(sid).digest('base64url');
}
