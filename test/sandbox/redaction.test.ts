/** Secrets that an app puts where they do not belong: the trace stores none, in any usual form. */
import { describe, expect, test } from 'vitest';
import { scrubber } from '../../src/sandbox/referee/redaction.ts';

const secret = 'a key/with+signs=0123456789';
const bytes = Buffer.from(secret);

describe('a secret', () => {
  test.each([
    ['as it is', secret],
    ['in an address', encodeURIComponent(secret)],
    ['in base64', bytes.toString('base64')],
    ['in base64url', bytes.toString('base64url')],
    ['in hex', bytes.toString('hex')],
    ['in hex, in capitals', bytes.toString('hex').toUpperCase()],
  ])('%s is hidden in texts, names and lists', (_form, hidden) => {
    const body = { name: `x${hidden}y and ${hidden}`, [hidden]: [hidden, { deep: hidden }], count: 1 };
    expect(scrubber([secret])(body)).toEqual({
      name: 'x[redacted]y and [redacted]',
      '[redacted]': ['[redacted]', { deep: '[redacted]' }],
      count: 1,
    });
  });
});

test('a short secret is hidden as a word, and other words stay', () => {
  expect(scrubber(['key'])({ a: 'key', b: 'the key.', c: 'monkeys', d: 'keys' })).toEqual({
    a: '[redacted]',
    b: 'the [redacted].',
    c: 'monkeys',
    d: 'keys',
  });
});

test('an empty secret hides nothing', () => expect(scrubber([''])('text')).toBe('text'));
