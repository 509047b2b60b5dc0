/** Parts of a call that the trace stores: no key, no token, and no unlimited body. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { isRecord } from '../../files/index.ts';

const maxBodyCharacters = 16_384;
/** Levels of a body. The redaction walks through them. */
const maxBodyDepth = 100;
/** Characters. */
const shortSecret = 12;

/** Headers whose values are no secrets; of all others only the name is kept. */
const plain = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'idempotency-key',
  'retry-after',
  'transfer-encoding',
  'user-agent',
  'x-request-id',
]);

export function plainHeaders(headers: IncomingHttpHeaders | OutgoingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, plain.has(name.toLowerCase()) ? String(value) : '[redacted]']],
    ),
  );
}

/** The path as the interface writes it, with `{token}` for the token, and of the query what the interface has there. */
export function pathOf(req: Request, token: string): string {
  const [path = ''] = req.originalUrl.split('?');
  const { operationId } = req.query;
  return (
    path.replace(encodeURIComponent(token), '{token}') +
    (typeof operationId === 'string' ? `?operationId=${encodeURIComponent(operationId)}` : '')
  );
}

/** The body, or null if it is too large or too deep to keep: the call itself is kept all the same. */
export function bounded(body: unknown): unknown {
  if (body === undefined || body === null || typeof body !== 'object' || isDeeperThan(body, maxBodyDepth)) return null;
  return JSON.stringify(body).length > maxBodyCharacters ? null : body;
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}

export function tokensIn(body: unknown): string[] {
  const token = isRecord(body) ? body['token'] : null;
  return typeof token === 'string' ? [token] : [];
}

/** Returns a secret as it is, in an address, and in usual encodings. */
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  ...(secret.length < shortSecret
    ? []
    : [
        ...(['base64', 'base64url', 'hex'] as const).map((encoding) => Buffer.from(secret).toString(encoding)),
        Buffer.from(secret).toString('hex').toUpperCase(),
      ]),
];

/** An app may put a secret where it does not belong; the trace must not keep it. */
export function scrubber(secrets: readonly string[]): <T>(value: T) => T {
  const hidden = [...new Set(secrets.filter((secret) => secret !== '').flatMap(formsOf))];
  const patterns = hidden.map((secret) => {
    const escaped = secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    // A short one stands in other words by chance, which would say where, and leave nothing to read.
    return new RegExp(secret.length < shortSecret ? `(?<![A-Za-z0-9])${escaped}(?![A-Za-z0-9])` : escaped, 'g');
  });
  const clean = (text: string) => patterns.reduce((left, pattern) => left.replace(pattern, '[redacted]'), text);
  const scrub = (value: unknown): unknown => {
    if (typeof value === 'string') return clean(value);
    if (Array.isArray(value)) return value.map(scrub);
    if (value !== null && typeof value === 'object')
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [clean(name), scrub(inner)]));
    return value;
  };
  // Texts change, and the shape stays.
  return <T>(value: T) => scrub(value) as T;
}
