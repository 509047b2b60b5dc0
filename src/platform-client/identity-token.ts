import type { RenewedToken } from '../contract/index.ts';
import { PlatformError } from './platform-error.ts';

/** An identity token and its end. */
export interface IdentityToken {
  readonly token: string;
  /** Epoch milliseconds; null where the platform did not say: a launch hands over a token, and not its end (spec 4.8). */
  readonly expiresAtMs: number | null;
}

/** Renews a token. Retries only if `isPatient` is true. */
export type RenewCall = (token: string, options: { readonly isPatient: boolean }) => Promise<RenewedToken>;

/** The store of a launch's token. `write` must be durable when it resolves: a renewed token is used only after it. */
export interface IdentityTokenStore {
  read(): Promise<IdentityToken>;
  write(token: IdentityToken): Promise<void>;
}

/** Options of `TokenKeeper.use`. */
interface TokenUse<T> {
  /** Repeats a request by the policy of the call. */
  readonly repeat: (attempt: () => Promise<T>) => Promise<T>;
  /** Runs before each request. */
  readonly before: (signal?: AbortSignal) => Promise<void>;
  /** True if a failed renewal is repeated. */
  readonly isPatient: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Expired by its code; or a 403 whose code the profile does not know, which may mean the same (spec 7). */
function mayBeStaleToken(error: PlatformError): boolean {
  if (error.code === 'token_expired' || error.code === 'token_revoked') return true;
  return error.platformStatus === 403 && error.code === 'unknown_error';
}

/** The time in milliseconds before its expiry at which a token is renewed. */
export const renewAheadMs = 5 * 60_000;
/** A token that lives for less than an hour is renewed ahead by this share of its life. */
const renewAheadShare = 1 / 12;
/** A renewal that gains no time (the platform's 12 h cap), or that fails, is not asked for again before this. */
const renewAheadPauseMs = 60_000;

/**
 * The token of one launch, renewed by one call at a time however many ask. Renewal keeps to spec 4.8,
 * rule 5: a token belongs to one launch, and its successor replaces it everywhere at once.
 */
export class TokenKeeper {
  #store: IdentityTokenStore;
  #renewCall: RenewCall;
  #now: () => number;
  #tokenLifetimeMs: number;
  #renewAheadMs: number;
  #renewing: Promise<IdentityToken> | null = null;
  #noAheadBeforeMs = 0;

  constructor(
    store: IdentityTokenStore,
    renewCall: RenewCall,
    { now, tokenLifetimeMs }: { now: () => number; tokenLifetimeMs: number },
  ) {
    this.#store = store;
    this.#renewCall = renewCall;
    this.#now = now;
    this.#tokenLifetimeMs = tokenLifetimeMs;
    this.#renewAheadMs = Math.min(renewAheadMs, tokenLifetimeMs * renewAheadShare);
  }

  /**
   * Makes a call with the token. If the platform rejects the token as expired or revoked, renews it and makes the call once more. Each repeated request uses
   * the current token. Throws the error of the call, or that of the renewal if the platform did not refuse it.
   */
  async use<T>(call: (token: string) => Promise<T>, { repeat, before, isPatient, signal }: TokenUse<T>): Promise<T> {
    let token = await this.#current(signal);
    const round = () => {
      let tries = 0;
      return repeat(async () => {
        await before(signal);
        // Another call may have renewed the token while this one waited. The old token is then invalid.
        if (tries++ > 0) token = (await this.#store.read()).token;
        return call(token);
      });
    };
    try {
      return await round();
    } catch (error) {
      if (!(error instanceof PlatformError) || !mayBeStaleToken(error)) throw error;
      token = await this.#fetchSuccessor(token, error, isPatient, signal);
      return round();
    }
  }

  /** Returns the token for the second call after `error`. Throws `error` if there is none. */
  async #fetchSuccessor(
    used: string,
    error: PlatformError,
    isPatient: boolean,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const held = await this.#store.read();
    if (held.token !== used) return held.token; // rotated by another call while this one was under way
    if (error.code === 'token_revoked') throw error;
    try {
      return (await this.renew(used, signal, isPatient)).token;
    } catch (renewal) {
      signal?.throwIfAborted();
      // Only a refusal ends the session. After any other failure, as of the store, the caller may try again later.
      throw renewal instanceof PlatformError && !renewal.isTransient ? error : renewal;
    }
  }

  /** The token to use now, renewed first where it ends within `renewAheadMs`. */
  async #current(signal?: AbortSignal): Promise<string> {
    const held = await this.#store.read();
    const now = this.#now();
    if (held.expiresAtMs === null || held.expiresAtMs - now > this.#renewAheadMs || now < this.#noAheadBeforeMs)
      return held.token;
    try {
      // The call itself renews with patience if the token is over by then.
      return (await this.renew(held.token, signal, false)).token;
    } catch (error) {
      signal?.throwIfAborted();
      // Still good for a while: the call itself will tell. One that is over must not be tried in vain.
      if (error instanceof PlatformError && (error.isTransient || now < held.expiresAtMs)) return held.token;
      throw error;
    } finally {
      this.#noAheadBeforeMs = now + renewAheadPauseMs;
    }
  }

  /**
   * For work that makes no calls. A token of unknown end is renewed, which tells the end: the launch may have been opened
   * long after the platform made the token.
   */
  async keepAlive(signal?: AbortSignal): Promise<void> {
    const held = await this.#store.read();
    if (held.expiresAtMs !== null) return void (await this.#current(signal));
    const now = this.#now();
    if (now < this.#noAheadBeforeMs) return;
    this.#noAheadBeforeMs = now + renewAheadPauseMs;
    await this.renew(held.token, signal, false).catch((error: unknown) => {
      signal?.throwIfAborted();
      // The token may be good for a while: the next call tells.
      if (!(error instanceof PlatformError)) throw error;
    });
  }

  /** Renews `used`, unless somebody has already: then the held token is the answer. */
  async renew(used: string, signal?: AbortSignal, isPatient = true): Promise<IdentityToken> {
    const held = await this.#store.read();
    if (held.token !== used) return held;
    // A renewal that starts after this line has a caller who awaits it.
    signal?.throwIfAborted();
    this.#renewing ??= this.#renewNow(used, isPatient).finally(() => (this.#renewing = null));
    return abortable(this.#renewing, signal);
  }

  async #renewNow(used: string, isPatient: boolean): Promise<IdentityToken> {
    let renewed: RenewedToken;
    try {
      renewed = await this.#renewCall(used, { isPatient });
    } catch (error) {
      // Another process may have renewed the token, which revokes this one.
      const held = await this.#store.read();
      if (held.token === used) throw error;
      return held;
    }
    const expiresAtMs =
      renewed.expiresAt === undefined ? this.#now() + this.#tokenLifetimeMs : Date.parse(renewed.expiresAt);
    const token = { token: renewed.token ?? used, expiresAtMs };
    await this.#store.write(token);
    return token;
  }
}

/** A shared promise, left early by one of its waiters without ending it for the others. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', onAbort));
}
