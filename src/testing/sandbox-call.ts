import type * as z from 'zod';
import { fillPath, KitError } from '../contract/index.ts';
import {
  controlCalls,
  type ControlAnswer,
  type ControlCall,
  type ControlName,
  type ControlPath,
} from '../sandbox/control/calls.ts';

/** Address of a sandbox, and the key to its control API if it needs one. */
export interface SandboxAddress {
  readonly url: string;
  readonly adminKey?: string | undefined;
}

type Row<Name extends ControlName> = (typeof controlCalls)[Name];
/** The answer to a control call, by its name. */
export type SandboxAnswer<Name extends ControlName> = ControlAnswer<Row<Name>>;
/** The values in the path of a control call, and its body. */
type Input<Name extends ControlName> = ControlPath<Row<Name>> &
  (Row<Name> extends { readonly request: infer Schema extends z.ZodType }
    ? { readonly body: z.input<Schema> }
    : object);

/** A call of the sandbox's control API, by its name in the table of control calls. Throws `KitError` with the status in its data if the sandbox refuses it. */
export async function sandboxCall<Name extends ControlName>(
  { url, adminKey }: SandboxAddress,
  name: Name,
  input: Input<Name>,
): Promise<SandboxAnswer<Name>> {
  const { method, path: pattern }: ControlCall = controlCalls[name];
  const { body = method === 'POST' ? {} : undefined, ...values }: { body?: unknown } = input;
  const path = fillPath(pattern, values);
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(adminKey !== undefined && { 'x-admin-key': adminKey }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  if (!response.ok)
    throw new KitError('sandbox_error', `the sandbox answered ${response.status} to ${path}`, {
      status: response.status,
    });
  // The kit's own sandbox answers this.
  return (response.status === 204 ? undefined : await response.json()) as SandboxAnswer<Name>;
}
