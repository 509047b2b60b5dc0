import * as z from 'zod';
import { fillPath, tolerant, type Call } from '../wire.ts';

const path = '/public/external-app/user/:token/detail';

/** @assumed user-detail: response of step 2 (spec 2.7: "fields not shown") */
const response = z.object({
  id: z.string().min(1),
  email: z.string(),
  name: z.string(),
  organization: z.string(),
});
/** The app must know whose launch it is, to keep the users' belongings apart. */
const read = tolerant(response, ['id']);

/** Input of step 2, the user's details (spec 4.8). */
export type UserDetailInput = { token: string };
/** Answer to step 2, the user's details (spec 4.8). */
export type UserDetail = z.output<typeof read>;

/** Step 2: GET /user/{token}/detail (spec 4.8). */
export const userDetail = {
  endpoint: 'user.detail',
  method: 'GET',
  path,
  response,
  encode: ({ token }: UserDetailInput) => ({ method: 'GET', path: fillPath(path, { token }) }),
  decode: (body: unknown): UserDetail => read.parse(body),
} as const satisfies Call<UserDetailInput, UserDetail> & Record<string, unknown>;
