import { randomUUID } from 'node:crypto';
import type { Launch, LaunchStore } from '../../../src/app/launch/launch-store.ts';
import type { SuiteTools } from './suite-tools.ts';

/** A store to be held to what `LaunchStore` promises. */
export interface LaunchStoreSubject {
  readonly store: LaunchStore;
  /** The same launches, as another process has them. */
  readonly reopen: () => Promise<LaunchStore>;
  /** Everything that is kept, as text: the suite looks for tokens in it. */
  readonly dump: () => Promise<string>;
}

/** Tests the promises of a store of launches. `open` gives an empty one. Call the suite within your own `describe`. */
export function launchStoreSuite({ test, expect }: SuiteTools, open: () => Promise<LaunchStoreSubject>): void {
  let opened: Promise<LaunchStoreSubject> | null = null;
  const subject = () => (opened ??= open());
  const launch = (createdAtMs: number, id: string = randomUUID()): Launch => ({
    id,
    user: { id: 'u', name: 'N' },
    createdAtMs,
  });
  const held = (token: string, expiresAtMs: number | null = null) => ({ token, expiresAtMs });

  test('a token begins one launch, is kept sealed, is renewed, and is found by another process', async () => {
    const { store, reopen, dump } = await subject();
    const wanted = [launch(1), launch(1), launch(1)];
    const begun = await Promise.all(wanted.map((one) => store.begin(one, 'the-token', held('the-token', 5))));
    expect(begun.filter(Boolean)).toHaveLength(1);
    const kept = wanted[begun.indexOf(true)]!;
    expect([await store.begunBy('the-token'), await store.begunBy('another')]).toEqual([kept.id, null]);
    expect(await store.find(kept.id)).toEqual(kept);
    expect(await store.find('nothing')).toBeNull();
    const tokens = store.tokens(kept.id);
    expect(await tokens.read()).toEqual(held('the-token', 5));
    await tokens.write(held('next-token'));
    expect(await tokens.read()).toEqual(held('next-token'));
    expect(await (await reopen()).tokens(kept.id).read()).toEqual(held('next-token'));
    expect(await dump()).not.toMatch(/the-token|next-token/);
  });

  test('an erased token stays erased, whoever was renewing it', async () => {
    const { store } = await subject();
    await store.begin(launch(1, 'erased'), 'erased', held('erased'));
    const tokens = store.tokens('erased');
    await tokens.read();
    await store.begin(launch(1, 'erased too'), 'erased too', held('erased too'));
    await store.eraseTokens(['erased', 'erased too']);
    await store.eraseTokens([]);
    await expect(store.tokens('erased too').read()).rejects.toMatchObject({ code: 'token_erased' });
    await expect(tokens.write(held('renewed'))).rejects.toMatchObject({ code: 'token_erased' });
    await expect(tokens.read()).rejects.toMatchObject({ code: 'token_erased' });
    expect(await store.find('erased')).not.toBeNull();
  });

  test('a sweep finds launches by their age, page by page, and forgets the ones it names', async () => {
    const { store } = await subject();
    for (const [id, atMs] of [
      ['p1', 100],
      ['p2', 100],
      ['p3', 100],
      ['young', 900],
    ] as const)
      await store.begin(launch(atMs, id), `token of ${id}`, held(id));
    const list = async (after: string | undefined, withToken?: boolean) =>
      (await store.listBegunBefore({ begunBeforeMs: 500, limit: 1_000, after, withToken })).filter((id) =>
        /^(p\d|young)$/.test(id),
      );
    expect(await list(undefined)).toEqual(['p1', 'p2', 'p3']);
    expect(await list('p1')).toEqual(['p2', 'p3']);
    expect(await store.listBegunBefore({ begunBeforeMs: 500, limit: 1, after: 'p1' })).toEqual(['p2']);
    await store.eraseTokens(['p2']);
    expect(await list(undefined, true)).toEqual(['p1', 'p3']);
    expect(await store.forget(['p1', 'p2', 'nothing'])).toBe(2);
    expect(await store.forget([])).toBe(0);
    expect([await store.find('p1'), (await store.find('p3'))?.id]).toEqual([null, 'p3']);
    expect(await list(undefined)).toEqual(['p3']);
  });
}
