import type { UserDetail } from '../../contract/index.ts';
import type { IdentityToken, IdentityTokenStore } from '../../platform-client/index.ts';
import type { AppDatabase } from '../database.ts';
import { hashToken, type TokenSealer } from './sealed-token.ts';

/** One launch of the app by one user: an external app session in the spec's words (4.8, rule 5). */
export interface Launch {
  readonly id: string;
  readonly user: UserDetail;
  readonly createdAtMs: number;
}

export class LaunchStore {
  #database: AppDatabase;
  #sealer: TokenSealer;

  constructor(database: AppDatabase, sealer: TokenSealer) {
    this.#database = database;
    this.#sealer = sealer;
  }

  /** True where `token` has begun a launch before. */
  async hasBegun(token: string): Promise<boolean> {
    const row = await this.#database.selectFrom('launches').select('id').where('first_token_hash', '=', hashToken(token)).executeTakeFirst();
    return row !== undefined;
  }

  /** Keeps a new launch. False where `firstToken` has begun one already: a token begins one session. */
  async begin(launch: Launch, firstToken: string, held: IdentityToken): Promise<boolean> {
    const result = await this.#database
      .insertInto('launches')
      .values({
        id: launch.id,
        first_token_hash: hashToken(firstToken),
        sealed_token: this.#sealer.seal(launch.id, held.token),
        token_expires_at: held.expiresAtMs,
        user: JSON.stringify(launch.user),
        created_at: launch.createdAtMs,
      })
      .onConflict((conflict) => conflict.column('first_token_hash').doNothing())
      .executeTakeFirst();
    return result.numInsertedOrUpdatedRows === 1n;
  }

  async find(id: string): Promise<Launch | null> {
    const row = await this.#database.selectFrom('launches').select(['id', 'user', 'created_at']).where('id', '=', id).executeTakeFirst();
    return row ? { id: row.id, user: JSON.parse(row.user) as UserDetail, createdAtMs: Number(row.created_at) } : null;
  }

  /** The launch's token, sealed at rest; a renewed one is committed before anything can use it. */
  tokens(launchId: string): IdentityTokenStore {
    return {
      read: async () => {
        const row = await this.#database
          .selectFrom('launches')
          .select(['sealed_token', 'token_expires_at'])
          .where('id', '=', launchId)
          .executeTakeFirstOrThrow();
        const expiresAtMs = row.token_expires_at === null ? null : Number(row.token_expires_at);
        return { token: this.#sealer.open(launchId, row.sealed_token), expiresAtMs };
      },
      write: async ({ token, expiresAtMs }) => {
        await this.#database
          .updateTable('launches')
          .set({ sealed_token: this.#sealer.seal(launchId, token), token_expires_at: expiresAtMs })
          .where('id', '=', launchId)
          .execute();
      },
    };
  }
}
