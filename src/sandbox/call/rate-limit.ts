import * as z from 'zod';
import type { SandboxDatabase } from '../database.ts';
import { endpoints, type Endpoint } from '../../contract/index.ts';
import type { FaultEffect } from './fault.ts';

/** Body of `POST /sandbox/rate-limit`. */
export const newRateLimit = z.strictObject({
  requestsPerMinute: z
    .int('must be an integer from 1 on')
    .min(1, 'must be an integer from 1 on')
    .max(1_000_000, 'must be at most 1000000'),
  endpoint: z.enum(endpoints, `must be one of ${endpoints.join(', ')}`).optional(),
});
export type RateLimitSetting = z.output<typeof newRateLimit>;

const minuteMs = 60_000;

/** Limit of calls per minute, for one endpoint or all together. None by default. The setting survives a restart; the count does not. */
export class RateLimit {
  #database: SandboxDatabase;
  /** Every call looks at it: kept beside the database, which nothing else writes. */
  #setting: RateLimitSetting | null;
  #now: () => number;
  #windowEndsMs = 0;
  #used = 0;

  /** `now`: the machine's clock, as clients wait by theirs. */
  constructor(database: SandboxDatabase, now: () => number) {
    this.#database = database;
    const row = database.prepare<[], { value: string }>(`select value from settings where name = 'rate-limit'`).get();
    this.#setting = row ? newRateLimit.parse(JSON.parse(row.value)) : null;
    this.#now = now;
  }

  get(): RateLimitSetting | null {
    return this.#setting;
  }

  set(setting: RateLimitSetting): void {
    this.clear();
    this.#database.prepare(`insert into settings values ('rate-limit', ?)`).run(JSON.stringify(setting));
    this.#setting = setting;
  }

  clear(): void {
    this.#database.prepare(`delete from settings where name = 'rate-limit'`).run();
    this.#setting = null;
    this.#windowEndsMs = 0;
  }

  /** Counts a call, and answers what it meets where it is one too many. */
  take(endpoint: Endpoint): FaultEffect | null {
    const setting = this.get();
    if (!setting || (setting.endpoint !== undefined && setting.endpoint !== endpoint)) return null;
    const now = this.#now();
    if (now >= this.#windowEndsMs) [this.#windowEndsMs, this.#used] = [now + minuteMs, 0];
    this.#used += 1;
    if (this.#used <= setting.requestsPerMinute) return null;
    return { status: 429, retryAfterSeconds: Math.max(1, Math.ceil((this.#windowEndsMs - now) / 1000)) };
  }
}
