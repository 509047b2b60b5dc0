import * as z from 'zod';
import { interfaceCalls, type CallFacts } from '../../contract/index.ts';
import { signedCalls } from '../call/signed-calls.ts';
import type { DocumentedCall } from './documented-call.ts';

/** A row of the table of calls as it stands in the document. */
function documented(id: string, row: CallFacts): DocumentedCall {
  const { group, section, method, request, fields, fileField, headers, errors } = row;
  const isSigned = Object.hasOwn(signedCalls, id);
  return {
    id,
    tag: group,
    summary: row.summary,
    description: `${row.description} (section ${section})`,
    method: method.toLowerCase() as 'get' | 'post',
    path: row.path,
    clause: section,
    errors: Object.keys(errors).map(Number),
    ...(row.query && { query: row.query }),
    ...(headers && { headers: z.object(Object.fromEntries(Object.values(headers).map((name) => [name, z.string().optional()]))) }), // oxfmt-ignore
    ...(request && { json: request }),
    ...(fields && { form: { fields, ...(fileField !== undefined && { file: fileField }) } }),
    ...(row.response && { response: row.response }),
    ...(row.mediaType !== undefined && { mediaType: row.mediaType }),
    ...(row.example !== undefined && { example: row.example }),
    ...('takesRange' in row && { takesRange: row.takesRange === true }),
    ...(isSigned && { isSigned }),
  };
}

/** Every call of the platform's interface that the sandbox answers (spec 4), and the addresses that it signs. */
export const platformCalls: readonly DocumentedCall[] = Object.entries({ ...interfaceCalls, ...signedCalls }).map(
  ([id, row]) => documented(id, row),
);
