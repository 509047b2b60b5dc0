import { KitError, limits, type UserDetail } from '../../contract/index.ts';
import type { IdentityToken, IdentityTokenStore } from '../../platform-client/index.ts';
import type { AppDatabase } from '../database.ts';
import { isFinal, runStates } from '../runs/run-state.ts';
import { hashToken, type TokenSealer } from './sealed-token.ts';

const tokenErased = () =>
  new KitError('token_erased', 'this session has ended and its token was erased', { status: 409 });

/** In the place of a sealed token that is no more. */
const erased = '';

/** One launch of the app by one user: an external app session in the spec's words (4.8, rule 5). */
export interface Launch {
  readonly id: string;
  readonly user: UserDetail;
  readonly createdAtMs: number;
}

export class LaunchStore {
  #database: AppDatabase;
  #sealer: TokenSealer;

  /** Tokens that were read or written, where no other process writes them: thousands of runs ask again and again. */
  #known: Map<string, IdentityToken> | null;
  #erasures = 0;

  /** `isShared`: other processes use the same database. */
  constructor(database: AppDatabase, sealer: TokenSealer, { isShared = true } = {}) {
    this.#database = database;
    this.#sealer = sealer;
    this.#known = isShared ? null : new Map();
  }

  /** True where `token` has begun a launch before. */
  async hasBegun(token: string): Promise<boolean> {
    const row = await this.#database
      .selectFrom('launches')
      .select('id')
      .where('first_token_hash', '=', hashToken(token))
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Keeps a new launch. False where `firstToken` has begun one already: a token begins one session. */
  async begin(launch: Launch, firstToken: string, held: IdentityToken): Promise<boolean> {
    const result = await this.#database
      .insertInto('launches')
      .values({
        id: launch.id,
        first_token_hash: hashToken(firstToken),
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
    return row ? { id: row.id, user: JSON.parse(row.user) as UserDetail, createdAtMs: Number(row.created_at) } : null;
  }

  /**
   * Erases the token of every launch that can use it no more: past the life that the platform gives it
   * (contract, "Tokens"), and with no run under way. How many there were.
   */
  async eraseTokens(nowMs: number): Promise<number> {
    this.#known?.clear();
    const unfinished = runStates.filter((state) => !isFinal(state));
    const result = await this.#database
      .updateTable('launches')
      .set({ sealed_token: erased })
      .where('sealed_token', '!=', erased)
      .where('created_at', '<', nowMs - limits.tokenLifetimeMaxMs - limits.tokenRenewalGraceMs)
      .where((of) =>
        of.not(
          of.exists(
            of
              .selectFrom('runs')
              .select('runs.id')
              .whereRef('runs.launch_id', '=', 'launches.id')
              .where('runs.state', 'in', unfinished),
          ),
        ),
      )
      .executeTakeFirst();
    return Number(result.numUpdatedRows);
  }

  /** Removes launches that began before then and have no run any more, with what is known of their users. How many there were. */
  async forget(begunBeforeMs: number): Promise<number> {
    const result = await this.#database
      .deleteFrom('launches')
      .where('created_at', '<', begunBeforeMs)
      .where((of) =>
        of.not(of.exists(of.selectFrom('runs').select('runs.id').whereRef('runs.launch_id', '=', 'launches.id'))),
      )
      .executeTakeFirst();
    return Number(result.numDeletedRows);
  }

  /** Erases one launch's token now: the platform has said that it is over for good. */
  async eraseToken(launchId: string): Promise<void> {
    await this.#database.updateTable('launches').set({ sealed_token: erased }).where('id', '=', launchId).execute();
    this.#known?.delete(launchId);
    this.#erasures += 1;
  }

  /** The launch's token, sealed at rest; a renewed one is committed before anything can use it. */
  tokens(launchId: string): IdentityTokenStore {
    return {
      read: async () => {
        const known = this.#known?.get(launchId);
        if (known) return known;
        const row = await this.#database
          .selectFrom('launches')
          .select(['sealed_token', 'token_expires_at'])
          .where('id', '=', launchId)
          .executeTakeFirstOrThrow();
        if (row.sealed_token === erased) throw tokenErased();
        const erasures = this.#erasures;
        const expiresAtMs = row.token_expires_at === null ? null : Number(row.token_expires_at);
        const held = { token: await this.#sealer.open(launchId, row.sealed_token), expiresAtMs };
        // Unless it was erased while it was opened.
        if (erasures === this.#erasures) this.#known?.set(launchId, held);
        return held;
      },
      write: async ({ token, expiresAtMs }) => {
        const { numUpdatedRows } = await this.#database
          .updateTable('launches')
          .set({ sealed_token: await this.#sealer.seal(launchId, token), token_expires_at: expiresAtMs })
          .where('id', '=', launchId)
          // A renewal that was under way when the token was erased does not bring one back.
          .where('sealed_token', '!=', erased)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw tokenErased();
        this.#known?.set(launchId, { token, expiresAtMs });
      },
    };
  }
}
