/** The table of calls, and the names that follow from it. */
import * as clientRows from './calls/index.ts';
import { catalogForClients } from './calls/catalog-for-clients.ts';
import type { CallFacts } from './calls/define-call.ts';
import { uploadFile } from './calls/upload-file.ts';
import { keysOf } from './keys.ts';
import type { Call } from './wire.ts';

type Rows = typeof clientRows;

/** Calls that the kit's client makes, by their names in a wire profile. */
export const calls: Rows = clientRows;

/** The name of a call of the client. */
export type CallName = keyof Rows;
const stepOf = (name: CallName) => (calls[name] as CallFacts).step ?? Infinity;
/** The flow of section 4.8 first, then by name. Node and the test runner list the exports of a module in different orders. */
export const callNames = keysOf(calls)
  .toSorted()
  .toSorted((a, b) => (stepOf(a) === stepOf(b) ? 0 : stepOf(a) - stepOf(b)));

/** The calls as a wire profile has them. */
export type ProfileCalls = {
  readonly [Name in CallName]: Rows[Name] extends Call<infer Input, infer Output> ? Call<Input, Output> : never;
};

/** Calls of the platform that only the sandbox answers, by their names. */
const served = { uploadFile, ...catalogForClients };

/** The rows of all calls, with the types that each has. */
export type InterfaceRow = Rows[CallName] | (typeof served)[keyof typeof served];

/** Every call of the platform's interface, by name. */
export const interfaceCalls: Readonly<Record<string, CallFacts>> = {
  ...Object.fromEntries(callNames.map((name) => [name, calls[name]])),
  ...served,
};

/** A call of the external-app group (spec 4.8). */
export type ExternalAppEndpoint = Extract<Rows[CallName], { group: 'External app' }>['endpoint'];
/** `stac.data` is the temporary link of an item's `data` asset (spec 2.3), and `stac.preview` that of its pictures. */
type AssetEndpoint = 'stac.data' | 'stac.preview';
/** A call of the platform, by the name that faults, rate limits, metrics, traces and errors use. */
export type Endpoint = Rows[CallName]['endpoint'] | (typeof served)[keyof typeof served]['endpoint'] | AssetEndpoint;

const endpointsOf = (isSo: (row: CallFacts) => boolean) => [
  ...new Set(
    Object.values(interfaceCalls)
      .filter(isSo)
      .map(({ endpoint }) => endpoint),
  ),
];

/** Names of the calls with a property. */
export const endpointsWhere = (isSo: (row: CallFacts) => boolean): ReadonlySet<string> => new Set(endpointsOf(isSo));

/** The seven calls of the external-app group (spec 4.8), in their order. */
export const externalAppEndpoints = endpointsOf(({ group }) => group === 'External app') as unknown as readonly [
  ExternalAppEndpoint,
  ...ExternalAppEndpoint[],
];

/** Every call, by the name that faults, limits and traces use. */
export const endpoints = [
  ...endpointsOf(() => true),
  ...(['stac.data', 'stac.preview'] satisfies AssetEndpoint[]),
] as unknown as readonly [Endpoint, ...Endpoint[]];

/** Error messages of the interface (sections 4.3 to 4.8 and 7), by call and status. Other statuses use HTTP's reason phrase. */
export const errorMessages: Readonly<Record<string, Readonly<Partial<Record<number, string>>>>> = Object.fromEntries(
  Object.values(interfaceCalls).map(({ endpoint, errors }) => [
    endpoint,
    Object.fromEntries(Object.entries(errors).filter(([, message]) => message !== null)) as Record<number, string>,
  ]),
);
