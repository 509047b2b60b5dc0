import * as z from 'zod';
import { controlAnswers } from '../control/answers.ts';
import { controlCalls as rows, type ControlCall } from '../control/calls.ts';
import type { DocumentedCall } from './documented-call.ts';

/** Statuses of errors that follow from the parts of a call. */
function errorsOf({ method, path, query }: ControlCall): number[] {
  const always = [401, 403, 421, 429, 500];
  if (method === 'POST') return [400, 404, 409, 415, 507, ...always];
  return [
    ...always,
    ...(path.includes(':') ? [404] : []),
    ...(query ? [400] : []),
    ...(method === 'DELETE' ? [507] : []),
  ];
}

/** A row of the table of control calls as it stands in the document. */
function documented([id, row]: readonly [string, ControlCall]): DocumentedCall {
  const { method, request, response, otherResponse, ...shared } = row;
  return {
    ...shared,
    id,
    tag: 'Sandbox',
    clause: 'Sandbox control',
    method: method.toLowerCase() as Lowercase<typeof method>,
    errors: errorsOf(row),
    ...(request && { json: request }),
    ...(response && { response: otherResponse ? z.union([response, otherResponse]) : response }),
  };
}

/** The sandbox's own calls: no part of the platform. */
export const controlCalls: readonly DocumentedCall[] = [
  {
    tag: 'Sandbox',
    method: 'get',
    clause: 'Sandbox control',
    id: 'getHealth',
    description: 'Answers without a key as soon as the sandbox can take calls. Use it as a readiness check.',
    summary: 'Answers once the sandbox is ready',
    path: '/health',
    response: controlAnswers.health,
    errors: [],
    isSigned: true,
  },
  ...Object.entries<ControlCall>(rows).map(documented),
];
