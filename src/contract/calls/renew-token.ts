import * as z from 'zod';
import { instant, tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofToken } from './errors.ts';

/** @assumed renewed-token: response of step 1 (spec 4.8 shows none) */
const response = z.object({ token: z.string().min(1), expiresAt: instant });
const read = tolerant(response, []);

/** Input of step 1, renew the identity token (spec 4.8). */
export type RenewTokenInput = { token: string };
/** `token` may be a new one; missing means that the old one lives on. */
export type RenewedToken = z.output<typeof read>;

/** Step 1: POST /token/{token}/renew (spec 4.8). */
export const renewToken = defineCall<RenewTokenInput, RenewedToken>()({
  endpoint: 'token.renew',
  group: 'External app',
  takesExpiredToken: true,
  section: '4.8',
  step: 1,
  summary: 'Renew the identity token',
  description:
    'Extends the life of the identity token of a launch. The answer may hold another token, which the app uses from then on. Call it before the token expires, or up to five minutes after.',
  method: 'POST',
  path: '/public/external-app/token/:token/renew',
  response,
  errors: { ...ofToken, 400: null },
  answerHolds: 'token',
  assumptions: [
    { id: 'renewed-token', assumes: 'step 1 answers `{token, expiresAt}`', probe: 'renew-token', about: 'answer' },
  ],
  decode: (body) => read.parse(body || {}),
});
