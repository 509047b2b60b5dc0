import * as z from 'zod';
import { tolerant } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofToken } from './errors.ts';

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
export const userDetail = defineCall<UserDetailInput, UserDetail>()({
  endpoint: 'user.detail',
  group: 'External app',
  section: '4.8',
  step: 2,
  summary: 'User details',
  description: 'Names the user who launched the app. An app keeps what belongs to different users apart by `id`.',
  method: 'GET',
  path: '/public/external-app/user/:token/detail',
  response,
  descriptions: { id: 'Identifier of the user. An app keeps what belongs to different users apart by it.' },
  errors: { ...ofToken, 400: null },
  answerHolds: 'names',
  assumptions: [
    {
      id: 'user-detail',
      section: '2.7',
      assumes: 'step 2 answers `{id, email, name, organization}`',
      probe: 'user-detail',
      about: 'answer',
    },
  ],
  decode: (body) => read.parse(body),
});
