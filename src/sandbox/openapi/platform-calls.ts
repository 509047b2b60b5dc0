import * as z from 'zod';
import { interfaceCalls, neededPermissions, type CallFacts } from '../../contract/index.ts';
import { signedCalls, type SignedCall } from '../call/signed-calls.ts';
import type { DocumentedCall } from './documented-call.ts';

/** ` Needs the permission ...`, or nothing for a call with any key. */
function permissionSentence(row: CallFacts): string {
  const names = neededPermissions(row).map((permission) => `\`${permission}\``);
  return names.length === 0 ? '' : ` The key needs the permission ${names.join(' or ')}.`;
}

/** A row of the table of calls as it stands in the document. */
function documented(id: string, row: CallFacts, isSigned = false): DocumentedCall {
  const { group, section, method, request, fields, fileField, headers, errors } = row;
  return {
    id,
    tag: group,
    summary: row.step === undefined ? row.summary : `${row.step}. ${row.summary}`,
    description: `${row.description}${isSigned ? '' : permissionSentence(row)} (section ${section})`,
    method: method.toLowerCase() as 'get' | 'post',
    path: row.path,
    clause: section,
    errors: Object.keys(errors).map(Number),
    ...{ isSigned, takesBearer: row.takesBearer === true },
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
  ...Object.entries(interfaceCalls).map(([id, row]) => documented(id, row)),
  ...Object.entries<SignedCall>(signedCalls).map(([id, row]) => ({
    ...documented(id, row, true),
    takesRange: row.takesRange === true,
  })),
];
