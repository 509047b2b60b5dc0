import * as z from 'zod';
import { fillPath, instant, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/token/:token/renew';

/** @assumed renewed-token: response of step 1 (spec 4.8 shows none) */
const response = z.object({ token: z.string().min(1), expiresAt: instant });
const read = tolerant(response, []);

/** Input of step 1, renew the identity token (spec 4.8). */
export type RenewTokenInput = { token: string };
/** `token` may be a new one; missing means that the old one lives on. */
export type RenewedToken = z.output<typeof read>;

/** Step 1: POST /token/{token}/renew (spec 4.8). */
export const renewToken = {
  endpoint: 'token.renew',
  method: 'POST',
  path,
  response,
  encode: ({ token }: RenewTokenInput) => ({ method: 'POST', path: fillPath(path, { token }) }),
  decode: (body: unknown): RenewedToken => read.parse(body || {}),
} as const satisfies Call<RenewTokenInput, RenewedToken> & Record<string, unknown>;
