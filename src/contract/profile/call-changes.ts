import * as z from 'zod';

export const wireName = z.string().regex(/^[^\s/?#&=]{1,200}$/, 'must be the name of a field');

const requestField = z.union([wireName, z.strictObject({ in: z.enum(['query', 'header', 'body']), name: wireName })]);
const responseField = z.union([
  wireName,
  z
    .strictObject({
      name: wireName.optional(),
      /** Our words to the platform's, in any case. */
      values: z.record(z.string(), z.string()).optional(),
      /** Fields whose texts make ours, with a space between them. */
      join: z.array(wireName).min(2).max(5).optional(),
      /** A time in seconds since 1970, or in seconds from now. Other usual forms of a time need no word. */
      as: z.enum(['seconds', 'seconds-from-now'], 'must be seconds or seconds-from-now').optional(),
    })
    .refine(
      ({ join, name, values, as }) => !join || (!name && !values && !as),
      'join stands alone: it has neither name nor values nor as',
    ),
]);

export const callChanges = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH']).optional(),
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, 'must begin with / and have neither query nor spaces')
    .optional(),
  body: z.literal('raw').optional(),
  /** Name of the form's part that is the file. */
  file: wireName.optional(),
  /** Fields of the request with a value that never changes. They stand in the body, or in the query where there is none. */
  constants: z.record(wireName, z.union([z.string(), z.number(), z.boolean()])).optional(),
  /** Status of an answer that comes before its result. The client makes the same call again until another one comes. */
  unfinished: z.int().min(200).max(299).optional(),
  request: z.record(z.string(), requestField).optional(),
  response: z.record(z.string(), responseField).optional(),
});

/** Differences between a call of a platform and the assumed one. */
export type CallChanges = z.input<typeof callChanges>;
