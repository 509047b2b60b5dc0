/** Token renewal: races between processes, and calls that are aborted. */
import { expect, test } from 'vitest';
import { PlatformError } from '../../src/platform-client/index.ts';
import { TokenKeeper, type IdentityToken } from '../../src/platform-client/identity-token.ts';

const hourMs = 3_600_000;
const revoked = new PlatformError('token.renew', 'token_revoked', 'it is revoked', { platformStatus: 403 });

function keeperOf(renewCall: (held: { value: IdentityToken }) => Promise<{ token?: string }>) {
  const held: { value: IdentityToken } = { value: { token: 'first', expiresAtMs: null } };
  const reads = { before: () => {} };
  const store = {
    read: () => {
      reads.before();
      return Promise.resolve(held.value);
    },
    write: (token: IdentityToken) => Promise.resolve(void (held.value = token)),
  };
  const keeper = new TokenKeeper(store, () => renewCall(held), { now: () => 0, tokenLifetimeMs: hourMs });
  return { keeper, held, reads };
}

test('a process that loses the race for a renewal uses the token of the winner', async () => {
  const winner = { token: 'second', expiresAtMs: hourMs };
  const { keeper, held } = keeperOf((store) => {
    store.value = winner;
    return Promise.reject(revoked);
  });
  expect(await keeper.renew('first')).toEqual(winner);
  expect(held.value).toEqual(winner);
});

test('each renewal uses the token of the renewal before', async () => {
  const renewed: string[] = [];
  const { keeper } = keeperOf(async (held) => {
    renewed.push(held.value.token);
    return { token: `after ${held.value.token}` };
  });
  const second = await keeper.renew('first');
  const third = await keeper.renew(second.token);
  expect([second.token, third.token]).toEqual(['after first', 'after after first']);
  expect(renewed).toEqual(['first', 'after first']);
});

test('after a renewal, a call is checked and repeated as before the renewal', async () => {
  const { keeper } = keeperOf(async () => ({ token: 'second' }));
  const failed = (code: 'token_expired' | 'unknown_error', platformStatus: number) =>
    new PlatformError('operation.status', code, code, { platformStatus });
  const answers = [failed('token_expired', 403), failed('unknown_error', 503), 'ok'];
  let checks = 0;
  const answered = await keeper.use(
    async () => {
      const answer = answers.shift();
      if (typeof answer !== 'string') throw answer;
      return answer;
    },
    {
      repeat: async <T>(attempt: () => Promise<T>): Promise<T> => {
        try {
          return await attempt();
        } catch (error) {
          if (error instanceof PlatformError && error.platformStatus === 503) return attempt();
          throw error;
        }
      },
      before: async () => void (checks += 1),
      ...{ isPatient: true, signal: undefined },
    },
  );
  expect([answered, checks]).toEqual(['ok', 3]);
});

test('calls that meet an expired token at the same time renew it once', async () => {
  let renewals = 0;
  const { keeper } = keeperOf(async () => ({ token: `number ${(renewals += 1)}` }));
  const tokens = await Promise.all([keeper.renew('first'), keeper.renew('first'), keeper.renew('first')]);
  expect(tokens.map(({ token }) => token)).toEqual(['number 1', 'number 1', 'number 1']);
});

test('a failed renewal of a token that nobody else renewed is an error', async () => {
  const { keeper } = keeperOf(() => Promise.reject(revoked));
  await expect(keeper.renew('first')).rejects.toBe(revoked);
});

test('a call that is aborted before the renewal starts none', async () => {
  let renewals = 0;
  const { keeper, reads } = keeperOf(() => {
    renewals += 1;
    return Promise.reject(revoked);
  });
  const abort = new AbortController();
  reads.before = () => abort.abort(new Error('aborted'));
  await expect(keeper.renew('first', abort.signal)).rejects.toThrow('aborted');
  expect(renewals).toBe(0);
});

test('a refused renewal ahead leaves a call the token that is still good', async () => {
  const capped = new PlatformError('token.renew', 'token_expired', 'no more', { platformStatus: 403 });
  const store = { read: async () => ({ token: 'first', expiresAtMs: 60_000 }), write: async () => {} };
  let now = 0;
  const keeper = new TokenKeeper(store, () => Promise.reject(capped), { now: () => now, tokenLifetimeMs: hourMs });
  const use = { repeat: <T>(attempt: () => Promise<T>) => attempt(), before: async () => {}, signal: undefined };
  const call = () => keeper.use(async (token) => token, { ...use, isPatient: false });
  expect(await call()).toBe('first');
  // A token that is over is not tried in vain.
  now = 3 * hourMs;
  await expect(call()).rejects.toBe(capped);
});

test('a renewed token that cannot be written down ends no session', async () => {
  const expired = new PlatformError('operation.status', 'token_expired', 'it has ended', { platformStatus: 403 });
  const away = new Error('the database is away');
  const store = {
    read: async () => ({ token: 'first', expiresAtMs: null }),
    write: () => Promise.reject(away),
  };
  const keeper = new TokenKeeper(store, async () => ({ token: 'second' }), { now: () => 0, tokenLifetimeMs: hourMs });
  const use = { repeat: <T>(attempt: () => Promise<T>) => attempt(), before: async () => {}, signal: undefined };
  await expect(keeper.use(() => Promise.reject(expired), { ...use, isPatient: false })).rejects.toBe(away);
});
