import * as z from 'zod';

export const wireName = z.string().regex(/^[^\s/?#&=]{1,200}$/, 'must be the name of a field');

const requestField = z.union([wireName, z.strictObject({ in: z.enum(['query', 'header', 'body']), name: wireName })]);
const responseField = z.union([
  wireName,
  z.strictObject({
    name: wireName.optional(),
    values: z.record(z.string(), z.string()).optional(),
  }),
]);

export const callChanges = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH']).optional(),
  path: z
    .string()
    .regex(/^\/[^?#\s]*$/, 'must begin with / and have neither query nor spaces')
    .optional(),
  body: z.literal('raw').optional(),
  request: z.record(z.string(), requestField).optional(),
  response: z.record(z.string(), responseField).optional(),
});

/** Differences between a call of a platform and the assumed one. */
export type CallChanges = z.input<typeof callChanges>;
