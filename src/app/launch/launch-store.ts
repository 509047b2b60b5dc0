import type { UserDetail } from '../../contract/index.ts';
import type { IdentityToken, IdentityTokenStore } from '../../platform-client/index.ts';

/** One launch of the app by one user: an external app session in the spec's words (4.8, rule 5). */
export interface Launch {
  readonly id: string;
  readonly user: UserDetail;
  readonly createdAtMs: number;
}

/** Selects the launches of one sweep query: at most `limit` launches that follow `after`, sorted by id. */
export interface LaunchPage {
  readonly begunBeforeMs: number;
  readonly limit: number;
  readonly after?: string | undefined;
  /** Only those whose token is still kept. Default: all. */
  readonly withToken?: boolean | undefined;
}

/** Keeps launches and their identity tokens. What a call has acknowledged is durable; the store never keeps a token in the clear. */
export interface LaunchStore {
  /** Finds the launch whose first or current token is `token`. Returns its id, or null. */
  begunBy(token: string): Promise<string | null>;
  /** Keeps a new launch. False where `firstToken` has begun one already: a token begins one session. */
  begin(launch: Launch, firstToken: string, held: IdentityToken): Promise<boolean>;
  find(id: string): Promise<Launch | null>;
  /** Ids, for a sweep. */
  listBegunBefore(page: LaunchPage): Promise<string[]>;
  /** Erases launches' tokens for good: a renewal that is under way brings none back. Their reads and writes reject with the code `token_erased`. */
  eraseTokens(launchIds: readonly string[]): Promise<void>;
  /** Removes launches and their users' details. Returns how many it removed. */
  forget(ids: readonly string[]): Promise<number>;
  /** The launch's token; a renewed one is committed before anything can use it. */
  tokens(launchId: string): IdentityTokenStore;
}
