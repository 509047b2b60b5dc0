/** Finds the assumption that a fact contradicts. A fact belongs to the call that was answered, whichever probe made it. */
import {
  assumptions,
  interfaceCalls,
  type Assumption,
  type AssumptionId,
  type CallAssumption,
  type WireCallName,
  wireCalls,
} from '../contract/index.ts';
import type { Place, Probe } from './probes/probe.ts';
import { probes } from './probes.ts';
import type { Exchange } from './target.ts';

export interface Attribution {
  /** The assumption that does not hold; null where the specification itself says how it is. */
  readonly assumption: AssumptionId | null;
  /** Section of the specification, or of the contract, that says how it is. Null if none does. */
  readonly section: string | null;
  readonly place: Place;
  /** In a wire profile, where one can say it: `calls.getOperation.response.status`. */
  readonly profilePath: string | null;
}

type KnownAssumption = Assumption & { readonly id: AssumptionId };
const byId = new Map<string, KnownAssumption>(assumptions.map((assumption) => [assumption.id, assumption]));

export const isSuccess = ({ facts }: Exchange): boolean => /^2/.test(facts['status'] ?? '');
export const probeOf = (exchange: string): string => exchange.split('/')[0] ?? '';
const labelOf = (exchange: string) => exchange.split('/')[1] ?? '';
/** An observation that is no answer by itself. */
const isNote = ({ method }: Exchange) => method === '';

/** Assumptions that a request is made for, where its name is not theirs. */
const askedBy: Readonly<Record<string, AssumptionId>> = {
  'second-upload/begun': 'several-uploads',
  'items-list/unknown parameter': 'items-query',
  'complete-upload/the same file': 'completion',
};

/** The assumption that a request is made for: the one that it is named after, or its probe. */
const namedBy = ({ name }: Exchange): KnownAssumption | undefined =>
  byId.get(askedBy[name] ?? labelOf(name)) ?? byId.get(probeOf(name));

/** Calls that answer items; the items list is no call of the client. */
const ofItems = /^(getItem|searchItems|)$/;
/** Facts of answers by the assumption that they are, whichever call answers them. */
const byFact: readonly (readonly [call: RegExp, fact: RegExp, AssumptionId])[] = [
  [ofItems, /^body(\.features\[\])?\.properties\.(eo:bands|bands)/, 'item-bands'],
  [ofItems, /^body(\.features\[\])?\.properties\.proj:shape/, 'item-shape'],
  [ofItems, /^body(\.features\[\])?\.assets\.raster/, 'item-raster'],
  [/^listModels$/, /\.type$/, 'inference-types'],
  [/^(runInference|getInferenceStatus)$/, /^body\.status$/, 'inference-statuses'],
];

const rowOf = (call: WireCallName | null) => (call === null ? undefined : interfaceCalls[call]);
const ofCall = (call: WireCallName | null, about: NonNullable<CallAssumption['about']>) =>
  byId.get(
    rowOf(call)?.assumptions?.find((assumption) => assumption.about === about || assumption.about === 'both')?.id ?? '',
  );

/** `seen`: all exchanges with the platform. */
export function attributionOf(
  exchange: Exchange,
  other: Exchange,
  fact: string,
  seen: readonly Exchange[],
): Attribution {
  const assumption = assumptionOf(exchange, other, fact, seen);
  const isError = isRefusal(exchange);
  const probe = probes.find(({ id }) => id === probeOf(exchange.name)) as Probe; // every exchange is one of a probe
  return {
    assumption: assumption?.id ?? null,
    section: assumption?.clause ?? sectionOf(exchange, fact, probe),
    place: placeOf(exchange, fact, assumption, probe),
    profilePath: profilePathOf(exchange, fact, isError),
  };
}

const countsFrom0 = ({ name, facts }: Exchange) =>
  name === 'upload-chunk/first-part' && facts['the first part'] === '0';

/** Section that shows a fact without an assumption. Headers are shown nowhere, and of refusals only those of section 7. */
function sectionOf(exchange: Exchange, fact: string, probe: Probe): string | null {
  if (fact.startsWith('header.')) return null;
  const row = rowOf(exchange.call);
  if (!isRefusal(exchange)) return row?.section ?? probe.place.section;
  const isShown = row?.errors[Number(exchange.facts['status'])] != null;
  return isShown || probe.place.section === '7' ? '7' : null;
}

/** The sandbox refuses the request. */
const isRefusal = (exchange: Exchange) => exchange.facts['status'] !== undefined && !isSuccess(exchange);

function assumptionOf(
  exchange: Exchange,
  other: Exchange,
  fact: string,
  seen: readonly Exchange[],
): KnownAssumption | undefined {
  const { call } = exchange;
  if (isNote(exchange)) return namedBy(exchange) ?? ofCall(call, 'answer');
  if (isRefusal(exchange)) {
    if (/^(body|header\.content-type)/.test(fact)) return byId.get('error-body');
    return fact === 'status' ? byId.get(askedBy[exchange.name] ?? labelOf(exchange.name)) : undefined;
  }
  // A header, such as that of a request id, is of no call.
  if (fact.startsWith('header.') && fact !== 'header.content-type') return undefined;
  const isRefused = fact === 'status' && !isSuccess(other);
  const [, , own] = byFact.find(([names, facts]) => names.test(call ?? '') && facts.test(fact)) ?? [];
  if (own) return byId.get(own);
  // The paths are the assumption, and so is all that they answer.
  if (call === null)
    return fact === 'status' || probeOf(exchange.name) === 'standard-paths' ? namedBy(exchange) : undefined;
  // Only what was taken before can be refused for what this request is made for.
  if (isRefused && seen.slice(0, seen.indexOf(other)).some((earlier) => earlier.call === call && isSuccess(earlier)))
    return namedBy(exchange);
  if (isRefused && call === 'uploadChunk' && seen.some(countsFrom0)) return byId.get('first-part');
  if (isRefused) return ofCall(call, 'request') ?? ofCall(call, 'answer');
  const [, field = ''] = /^body\.([^.[]+)/.exec(fact) ?? [];
  return rowOf(call)?.shownFields?.includes(field) ? undefined : ofCall(call, 'answer');
}

/** The file of a call's row, below `src`. */
const fileOf = (call: WireCallName) =>
  `contract/calls/${call.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`;

function placeOf(exchange: Exchange, fact: string, assumption: KnownAssumption | undefined, probe: Probe): Place {
  const isOfCall =
    assumption === undefined || rowOf(exchange.call)?.assumptions?.some(({ id }) => id === assumption.id);
  if (assumption && !isOfCall) return { file: assumption.file, symbol: assumption.symbol, section: assumption.clause };
  if (exchange.call === null) return probe.place;
  const field = /^body\.(.+)$/.exec(fact)?.[1];
  const symbol = field === undefined ? exchange.call : `${exchange.call}.response.${field}`;
  return { file: fileOf(exchange.call), symbol, section: rowOf(exchange.call)?.section ?? '' };
}

function profilePathOf({ call }: Exchange, fact: string, isError: boolean): string | null {
  const field = /^body\.(.+)$/.exec(fact)?.[1];
  if (isError)
    return field !== undefined && /^(error|code|requestId|details|expected)$/.test(field)
      ? `errors.fields.${field}`
      : null;
  const row = rowOf(call);
  if (call === null || !row) return null;
  const root = field?.split(/[.[]/)[0];
  if (root === undefined) return `calls.${call}`;
  // Other fields have no name in a profile.
  return wireCalls[call].response.includes(root) ? `calls.${call}.response.${root}` : null;
}

/** Names of the baseline's exchanges that show whether an assumption holds. */
export function shownBy({ id, probe }: KnownAssumption, baseline: readonly Exchange[]): string[] {
  const names = (isSo: (exchange: Exchange) => boolean) => baseline.filter(isSo).map(({ name }) => name);
  const labelled = names(({ name }) => labelOf(name) === id || askedBy[name] === id);
  if (labelled.length > 0) return labelled;
  const ofFact = byFact.filter(([, , own]) => own === id);
  if (ofFact.length > 0)
    return names((exchange) => isSuccess(exchange) && ofFact.some(([calls]) => calls.test(exchange.call ?? '')));
  if (id === 'error-body') return names(isRefusal);
  const own = Object.entries(interfaceCalls).find(([, row]) =>
    row.assumptions?.some((assumption) => assumption.id === id && assumption.about !== undefined),
  );
  const answers = own ? names((exchange) => exchange.call === own[0] && isSuccess(exchange)) : [];
  if (answers.length > 0) return answers;
  return names((exchange) => probeOf(exchange.name) === probe && (isSuccess(exchange) || isNote(exchange)));
}
