import { type WireLimits } from '../../contract/index.ts';
import type { SandboxClock } from '../clock.ts';
import type { SandboxDatabase } from '../database.ts';
import type { Launch } from './launch.ts';
import { hashSecret, newSecret, type Signer } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

interface TokenRow {
  token_hash: string;
  launch_id: string;
  predecessor_hash: string | null;
  expires_at: number;
  first_used_at: number | null;
  revoked_at: number | null;
  /** 1 for the first token of a launch, one more for each successor. */
  number: number;
}

export interface IssuedToken {
  readonly token: string;
  readonly expiresAtMs: number;
}

const unknown = () => new SandboxError('token_not_found');
const revoked = () => new SandboxError('token_revoked');
const expired = () => new SandboxError('token_expired');

/**
 * Identity tokens, hashed at rest. A token lives `tokenLifetimeMs` on its launch's clock; only a
 * renewal gives it more, up to `tokenLifetimeMaxMs` after the launch.
 */
export class IdentityTokens {
  #database: SandboxDatabase;
  #clock: SandboxClock;
  #signer: Signer;
  #limits: WireLimits;

  constructor(database: SandboxDatabase, clock: SandboxClock, signer: Signer, limits: WireLimits) {
    this.#database = database;
    this.#clock = clock;
    this.#signer = signer;
    this.#limits = limits;
  }

  /** The first token of a launch. */
  issue(launch: Launch): IssuedToken {
    return this.#insert(newSecret(), launch, null, 1);
  }

  /** The launch that `token` stands for. Throws what the contract says of unknown, revoked and expired tokens. */
  authenticate(token: string): string {
    const row = this.#live(token);
    if (this.#clock.now(row.launch_id) >= row.expires_at) throw expired();
    this.#use(row);
    return row.launch_id;
  }

  /** The launch that `token` belongs or belonged to, and which of its tokens it is, whatever its state. */
  identify(token: string): { launchId: string; tokenNumber: number } | null {
    const row = this.#find(token);
    return row ? { launchId: row.launch_id, tokenNumber: row.number } : null;
  }

  /** The launch of a token that may be renewed: alive, or over for at most `tokenRenewalGraceMs`. Throws as `authenticate`. */
  requireRenewable(token: string): string {
    const row = this.#live(token);
    if (this.#clock.now(row.launch_id) > row.expires_at + this.#limits.tokenRenewalGraceMs) throw expired();
    return row.launch_id;
  }

  /** Step 1 (spec 4.8). The same answer again for a token that was renewed and whose successor nobody has used. */
  renew(token: string, launch: Launch): IssuedToken {
    const row = this.#live(token);
    this.requireRenewable(token);
    if (this.#clock.now(launch.id) >= launch.createdAtMs + this.#limits.tokenLifetimeMaxMs) throw expired();
    this.#use(row);
    if (launch.renewPolicy === 'extend') {
      const expiresAtMs = Math.max(row.expires_at, this.#expiry(launch));
      this.#extend(row.token_hash, expiresAtMs);
      return { token, expiresAtMs };
    }
    // Derived from the old token, so that it can be answered again without being kept.
    const successor = this.#signer.sign('successor of a token', token);
    const existing = this.#find(successor);
    if (existing) {
      // Extend an unused successor that has less than half of its lifetime left.
      const left = existing.expires_at - this.#clock.now(launch.id);
      if (left > this.#limits.tokenLifetimeMs / 2) return { token: successor, expiresAtMs: existing.expires_at };
      const expiresAtMs = Math.max(existing.expires_at, this.#expiry(launch));
      this.#extend(existing.token_hash, expiresAtMs);
      return { token: successor, expiresAtMs };
    }
    return this.#insert(successor, launch, row.token_hash, row.number + 1);
  }

  /** When the newest token of a launch ends. */
  expiryOf(launchId: string): number {
    const row = this.#database
      .prepare<[string], { at: number }>('select max(expires_at) as at from tokens where launch_id = ?')
      .get(launchId);
    return row?.at ?? 0;
  }

  revokeAll(launchId: string): void {
    this.#database
      .prepare('update tokens set revoked_at = ? where launch_id = ? and revoked_at is null')
      .run(this.#clock.now(launchId), launchId);
  }

  #extend(tokenHash: string, expiresAtMs: number): void {
    this.#database.prepare('update tokens set expires_at = ? where token_hash = ?').run(expiresAtMs, tokenHash);
  }

  #find(token: string): TokenRow | undefined {
    return this.#database
      .prepare<[string], TokenRow>('select * from tokens where token_hash = ?')
      .get(hashSecret(token));
  }

  #live(token: string): TokenRow {
    const row = this.#find(token);
    if (!row) throw unknown();
    if (row.revoked_at !== null) throw revoked();
    return row;
  }

  /** The first use of a successor ends its predecessor. */
  #use(row: TokenRow): void {
    if (row.first_used_at !== null) return;
    const now = this.#clock.now(row.launch_id);
    this.#database.transaction(() => {
      this.#database.prepare('update tokens set first_used_at = ? where token_hash = ?').run(now, row.token_hash);
      if (row.predecessor_hash === null) return;
      this.#database
        .prepare('update tokens set revoked_at = ? where token_hash = ? and revoked_at is null')
        .run(now, row.predecessor_hash);
    })();
  }

  #insert(token: string, launch: Launch, predecessorHash: string | null, number: number): IssuedToken {
    const expiresAtMs = this.#expiry(launch);
    this.#database
      .prepare(
        'insert into tokens (token_hash, launch_id, predecessor_hash, expires_at, number) values (?, ?, ?, ?, ?)',
      )
      .run(hashSecret(token), launch.id, predecessorHash, expiresAtMs, number);
    return { token, expiresAtMs };
  }

  #expiry(launch: Launch): number {
    return Math.min(
      this.#clock.now(launch.id) + this.#limits.tokenLifetimeMs,
      launch.createdAtMs + this.#limits.tokenLifetimeMaxMs,
    );
  }
}
