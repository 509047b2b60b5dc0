import { KitError } from '../../contract/index.ts';
import type { IdentityToken, IdentityTokenStore } from '../../platform-client/index.ts';
import type { AppDatabase } from '../database.ts';
import type { Launch, LaunchPage, LaunchStore } from './launch-store.ts';
import { joinedReads } from '../joined-reads.ts';
import { RecentMap } from '../recent-map.ts';
import { hashToken, type TokenSealer } from './sealed-token.ts';
import { ownJson } from '../../files/index.ts';

const tokenErased = () => new KitError('token_erased', 'your session has expired', { status: 409 });

interface SealedToken {
  readonly id: string;
  readonly sealed_token: string;
  readonly token_expires_at: number | null;
}

/** Replaces a sealed token that was erased. */
const erased = '';
const maxKnown = 10_000;

/** Launches in a SQL database, their tokens sealed. */
export class SqlLaunchStore implements LaunchStore {
  #database: AppDatabase;
  #sealer: TokenSealer;

  #isShared: boolean;
  /** Tokens that were read or written, by launch. If other processes use the database, a token counts only as long as its seal is stored. */
  #known = new RecentMap<string, { readonly seal: string; readonly held: IdentityToken }>(maxKnown);
  #sealed = joinedReads((ids) => this.#readSealed(ids), { missing: (id) => new Error(`there is no launch ${id}`) });
  #erasures = 0;

  /** `isShared`: other processes use the same database. */
  constructor(database: AppDatabase, sealer: TokenSealer, { isShared = true } = {}) {
    this.#database = database;
    this.#sealer = sealer;
    this.#isShared = isShared;
  }

  async begunBy(token: string): Promise<string | null> {
    const row = await this.#database
      .selectFrom('launches')
      .select('id')
      .where((where) =>
        where.or([where('first_token_hash', '=', hashToken(token)), where('latest_token_hash', '=', hashToken(token))]),
      )
      .executeTakeFirst();
    return row?.id ?? null;
  }

  async begin(launch: Launch, firstToken: string, held: IdentityToken): Promise<boolean> {
    const result = await this.#database
      .insertInto('launches')
      .values({
        id: launch.id,
        first_token_hash: hashToken(firstToken),
        latest_token_hash: hashToken(held.token),
        sealed_token: await this.#sealer.seal(launch.id, held.token),
        token_expires_at: held.expiresAtMs,
        user: JSON.stringify(launch.user),
        created_at: launch.createdAtMs,
      })
      .onConflict((conflict) => conflict.column('first_token_hash').doNothing())
      .executeTakeFirst();
    return result.numInsertedOrUpdatedRows === 1n;
  }

  async find(id: string): Promise<Launch | null> {
    const row = await this.#database
      .selectFrom('launches')
      .select(['id', 'user', 'created_at'])
      .where('id', '=', id)
      .executeTakeFirst();
    return row ? { id: row.id, user: ownJson<Launch['user']>(row.user), createdAtMs: row.created_at } : null;
  }

  async listBegunBefore({ begunBeforeMs, limit, after = '', withToken = false }: LaunchPage): Promise<string[]> {
    const query = this.#database
      .selectFrom('launches')
      .select('id')
      .where('created_at', '<', begunBeforeMs)
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit);
    const rows = await (withToken ? query.where('sealed_token', '!=', erased) : query).execute();
    return rows.map(({ id }) => id);
  }

  async forget(ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const { numDeletedRows } = await this.#database.deleteFrom('launches').where('id', 'in', ids).executeTakeFirst();
    for (const id of ids) this.#known.delete(id);
    return Number(numDeletedRows);
  }

  async #readSealed(ids: readonly string[]): Promise<Map<string, SealedToken>> {
    const rows = await this.#database
      .selectFrom('launches')
      .select(['id', 'sealed_token', 'token_expires_at'])
      .where('id', 'in', ids)
      .execute();
    return new Map(rows.map((row) => [row.id, row]));
  }

  async eraseTokens(launchIds: readonly string[]): Promise<void> {
    if (launchIds.length === 0) return;
    await this.#database.updateTable('launches').set({ sealed_token: erased }).where('id', 'in', launchIds).execute();
    for (const id of launchIds) this.#known.delete(id);
    this.#erasures += 1;
  }

  tokens(launchId: string): IdentityTokenStore {
    return {
      read: async () => {
        const known = this.#known.get(launchId);
        if (known && !this.#isShared) return known.held;
        const erasures = this.#erasures;
        const row = await this.#sealed(launchId);
        if (row.sealed_token === erased) {
          this.#known.delete(launchId);
          throw tokenErased();
        }
        if (known?.seal === row.sealed_token) return known.held;
        const held = {
          token: await this.#sealer.open(launchId, row.sealed_token),
          expiresAtMs: row.token_expires_at,
        };
        // Skipped if the token was erased while it was being read.
        if (erasures === this.#erasures) this.#known.set(launchId, { seal: row.sealed_token, held });
        return held;
      },
      write: async (held) => {
        const seal = await this.#sealer.seal(launchId, held.token);
        const { numUpdatedRows } = await this.#database
          .updateTable('launches')
          .set({
            sealed_token: seal,
            latest_token_hash: hashToken(held.token),
            token_expires_at: held.expiresAtMs,
          })
          .where('id', '=', launchId)
          // A renewal that was under way when the token was erased does not bring one back.
          .where('sealed_token', '!=', erased)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw tokenErased();
        this.#known.set(launchId, { seal, held });
      },
    };
  }
}
