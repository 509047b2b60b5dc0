import * as z from 'zod';
import { interfaceCalls, type CallFacts } from '../../contract/index.ts';
import { signedCalls, type SignedCall } from '../call/signed-calls.ts';
import type { DocumentedCall } from './documented-call.ts';

/** A row of the table of calls as it stands in the document. */
function documented([id, row]: readonly [string, CallFacts]): DocumentedCall {
  const { group, section, method, request, fields, fileField, headers, errors } = row;
  return {
    id,
    tag: group,
    summary: row.step === undefined ? row.summary : `${row.step}. ${row.summary}`,
    description: `${row.description} (section ${section})`,
    method: method.toLowerCase() as 'get' | 'post',
    path: row.path,
    clause: section,
    errors: Object.keys(errors).map(Number),
    ...(row.descriptions && { descriptions: row.descriptions }),
    ...(row.query && { query: row.query }),
    ...(headers && { headers: z.object(Object.fromEntries(Object.values(headers).map((name) => [name, z.string().optional()]))) }), // oxfmt-ignore
    ...(request && { json: request }),
    ...(fields && { form: { fields, ...(fileField !== undefined && { file: fileField }) } }),
    ...(row.response && { response: row.response }),
    ...(row.mediaType !== undefined && { mediaType: row.mediaType }),
    ...(row.example !== undefined && { example: row.example }),
  };
}

/** Every call of the platform's interface that the sandbox answers (spec 4), and the addresses that it signs. */
export const platformCalls: readonly DocumentedCall[] = [
  ...Object.entries(interfaceCalls).map(documented),
  ...Object.entries<SignedCall>(signedCalls).map(([id, row]) => ({
    ...documented([id, row]),
    takesRange: row.takesRange === true,
    isSigned: true,
  })),
];
