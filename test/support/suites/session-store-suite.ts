import type { SessionData } from 'express-session';
import { sessionLifetimeMs, type SessionStore } from '../../../src/app/launch/session-store.ts';
import type { SuiteTools } from './suite-tools.ts';

/** A store to be held to what `SessionStore` promises. */
export interface SessionStoreSubject {
  readonly store: SessionStore;
  /** Number of sessions that are kept. */
  readonly count: () => Promise<number>;
  /** Everything that is kept, as text. */
  readonly dump: () => Promise<string>;
}

/** Tests the promises of a store of browsers' sessions. `open` gives an empty one on the clock `now`, epoch milliseconds. */
export function sessionStoreSuite(
  { test, expect }: SuiteTools,
  open: (now: () => number) => Promise<SessionStoreSubject>,
): void {
  test('sessions are kept until they end, under no id that would open one', async () => {
    let now = 1_700_000_000_000;
    const { store, count, dump } = await open(() => now);
    const get = (id: string) =>
      new Promise<SessionData | null>((resolve, reject) =>
        store.get(id, (error: unknown, session) => (error ? reject(error) : resolve(session ?? null))),
      );
    const set = (id: string, session: SessionData) =>
      new Promise<void>((resolve, reject) =>
        store.set(id, session, (error: unknown) => (error ? reject(error) : resolve())),
      );
    // A store keeps what it gets; the real cookie has more fields.
    const session = { cookie: { originalMaxAge: null }, launchId: 'l' } as SessionData;
    await set('the-session', session);
    expect(await get('the-session')).toEqual(session);
    expect(await get('another')).toBeNull();
    expect(await dump()).not.toContain('the-session');
    await set('the-session', { ...session, launchId: 'other' });
    expect(await get('the-session')).toMatchObject({ launchId: 'other' });
    await set('left', session);
    await new Promise<void>((resolve, reject) =>
      store.destroy('left', (error: unknown) => (error ? reject(error) : resolve())),
    );
    expect(await get('left')).toBeNull();
    await store.sweep();
    expect(await count()).toBe(1);
    now += sessionLifetimeMs + 1;
    expect(await get('the-session')).toBeNull();
    await store.sweep();
    expect(await count()).toBe(0);
  });
}
