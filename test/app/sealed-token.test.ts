/** Identity tokens at rest: a write access to the database must not turn one user's session into another's. */
import { expect, test } from 'vitest';
import { Secret } from '../../src/app/config.ts';
import { createTokenSealer, TokenUnreadableError } from '../../src/app/launch/sealed-token.ts';

const [first, second] = ['a'.repeat(32), 'b'.repeat(32)].map((text) => new Secret(text)) as [Secret, Secret];
const token = 'identity-token-of-ada';

test('a sealed token opens for its launch only', async () => {
  const sealer = createTokenSealer([first]);
  const sealed = await sealer.seal('launch-of-ada', token);
  expect(sealed).not.toContain(token);
  expect(await sealer.open('launch-of-ada', sealed)).toBe(token);
  await expect(sealer.open('launch-of-ben', sealed)).rejects.toThrow(TokenUnreadableError);
});

test('a header that names another launch does not open it', async () => {
  const sealer = createTokenSealer([first]);
  const [, ...rest] = (await sealer.seal('launch-of-ada', token)).split('.');
  const [head = ''] = (await sealer.seal('launch-of-ben', 'another')).split('.');
  await expect(sealer.open('launch-of-ben', [head, ...rest].join('.'))).rejects.toThrow(TokenUnreadableError);
});

test('a replaced secret still opens what it sealed, and a removed one does not', async () => {
  const sealed = await createTokenSealer([first]).seal('launch', token);
  expect(await createTokenSealer([second, first]).open('launch', sealed)).toBe(token);
  await expect(createTokenSealer([second]).open('launch', sealed)).rejects.toThrow(TokenUnreadableError);
  const renewed = await createTokenSealer([second, first]).seal('launch', token);
  expect(await createTokenSealer([second]).open('launch', renewed)).toBe(token);
});

test.each(['', 'no.jwe', '{}', token])('%j is no sealed token', (text) =>
  expect(createTokenSealer([first]).open('launch', text)).rejects.toThrow(TokenUnreadableError),
);
