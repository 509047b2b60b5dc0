import type { AssumptionVerdict, Difference, DriftVerdict } from './compare.ts';
import { verdicts, worst } from './compare.ts';
import type { Coverage, Share } from './coverage.ts';
import type { Exchange, Level } from './target.ts';

/** A difference that is known, in a file of `--expect`. */
export interface KnownDifference {
  readonly exchange: string;
  readonly fact: string;
}

export interface DriftReport {
  readonly format: 'marketplace-drift/1';
  readonly platform: string;
  readonly level: Level;
  /** When the comparison was made, ISO 8601, UTC. */
  readonly finishedAt: string;
  readonly result: DriftVerdict;
  readonly differences: readonly Difference[];
  /** Expected, and not there any more: who expects them believes what is not so. */
  readonly gone: readonly KnownDifference[];
  readonly assumptions: readonly AssumptionVerdict[];
  readonly coverage: Coverage;
  readonly missing: Readonly<Record<string, string>>;
  /** Probes of the level that could not be made, with the reason. */
  readonly unmade: readonly string[];
  /** Exchanges of the sandbox that the platform or its record does not have. Those that a record lacks do not count. */
  readonly unseen: readonly string[];
}

/** Takes what is known out of the differences, and tells what is known and not there. */
export function withoutKnown(
  differences: readonly Difference[],
  known: readonly KnownDifference[],
  seen: readonly Exchange[],
): { readonly unknown: Difference[]; readonly gone: KnownDifference[] } {
  const is = (a: KnownDifference, b: KnownDifference) => a.exchange === b.exchange && a.fact === b.fact;
  return {
    unknown: differences.filter((difference) => !known.some((other) => is(difference, other))),
    // A difference that this run did not look at may still exist.
    gone: known.filter(
      (knownDifference) =>
        seen.some(({ name }) => name === knownDifference.exchange) &&
        !differences.some((other) => is(knownDifference, other)),
    ),
  };
}

/** True where all was looked at, nothing differs that was not expected, and nothing expected has gone. */
export const isAsExpected = ({ result, gone }: DriftReport): boolean =>
  gone.length === 0 && verdicts.indexOf(result) < verdicts.indexOf('not observed');

/** Missing probes are not good: a level is green only if all of its probes were made. */
export const resultOf = (differences: readonly Difference[], isPartial: boolean): DriftVerdict =>
  worst([...differences.map(({ verdict }) => verdict), ...(isPartial ? (['not observed'] as const) : [])]);

/** A refused key or token explains most differences that follow, so it comes first. */
function refusals(exchanges: readonly Exchange[]): string[] {
  const refused = (name: string, ...statuses: string[]) =>
    exchanges.find((exchange) => exchange.name === name && statuses.includes(exchange.facts['status'] ?? ''));
  const key =
    refused('catalog/root', '401', '403') ?? refused('catalog/child', '401') ?? refused('list-models/all', '401');
  const token = refused('user-detail/of the launch', '401', '403', '404');
  return [
    ...(key
      ? [
          `the platform refuses the API key for ${key.name} (status ${key.facts['status']}): check the key and its permissions,`,
          'and `apiKey` {header, prefix} of the wire profile. Differences below may come from that.',
          '',
        ]
      : []),
    ...(token && !key
      ? [
          `the platform refuses the identity token (status ${token.facts['status']}): launch the app again for a fresh one,`,
          'or change the path of `calls.userDetail` in the wire profile. Differences below may come from that.',
          '',
        ]
      : []),
  ];
}

/** Facts that a platform has in all of its answers or in none: the report has each once. */
const ofThePlatform: readonly string[] = ['header.x-request-id'];
const maxNamed = 3;

export function reportText(report: DriftReport, exchanges: readonly Exchange[]): string {
  const lines = refusals(exchanges);
  const ofPlatform = report.differences.filter(({ fact }) => ofThePlatform.includes(fact));
  const { shown: ofCalls, alsoIn } = once(
    report.differences.filter((difference) => !ofPlatform.includes(difference)),
    exchanges,
  );
  for (const [text, own] of Map.groupBy(
    ofPlatform,
    (difference) => `${difference.fact}: ${differenceInWords(difference)}`,
  ))
    lines.push(
      `${worst(own.map(({ verdict }) => verdict)).toUpperCase()}  ${text}`,
      `    in ${own.length} ${own.length === 1 ? 'exchange' : 'exchanges'}: ${namesOf(own.map(({ exchange }) => exchange))}`,
      '',
    );
  const names = [...new Set(ofCalls.map(({ exchange }) => exchange))];
  for (const name of names) {
    const own = ofCalls.filter(({ exchange }) => exchange === name);
    const made = exchanges.find((exchange) => exchange.name === name && exchange.method !== '');
    lines.push(`${worst(own.map(({ verdict }) => verdict)).toUpperCase()}  ${name}`);
    for (const difference of own) {
      const others = alsoIn.get(difference) ?? [];
      lines.push(
        `    ${difference.fact}: ${differenceInWords(difference)}${others.length === 0 ? '' : ` (also in ${others.join(', ')})`}`,
      );
    }
    const places = [...new Set(own.map(({ place }) => `src/${place.file} (${place.symbol})`))];
    const inProfile = [...new Set(own.flatMap(({ profilePath }) => profilePath ?? []))];
    lines.push(
      `    change ${places.join(', ')}${inProfile.length > 0 ? `; in a wire profile ${inProfile.join(', ')}` : ''}`,
    );
    const assumed = [...new Set(own.flatMap(({ assumption }) => assumption ?? []))];
    const sections = [
      ...new Set(own.flatMap(({ assumption, section }) => (assumption === null && section !== null ? [section] : []))),
    ];
    lines.push(
      `    ${assumed.length > 0 ? `assumption: ${assumed.join(', ')}` : sections.length > 0 ? `no assumption: section ${sections.join(', ')} of the specification says how it is. Report the difference to the platform or to the kit` : 'no assumption: neither the specification nor the contract says how it is'}`,
    );
    if (made) {
      lines.push(
        `    > ${made.method} ${made.path}${made.requestBody === null ? '' : ` ${made.requestBody.slice(0, 300)}`}`,
      );
      lines.push(`    < ${made.facts['status']} ${made.responseBody.slice(0, 600)}`);
      if (made.unreadable !== null) lines.push(`    the wire profile cannot read it: ${made.unreadable}`);
    }
    lines.push('');
  }
  for (const { exchange, fact } of report.gone) lines.push(`EXPECTED, AND NOT SO  ${exchange} ${fact}`, '');
  for (const call of [...report.unmade, ...report.unseen]) lines.push(`NOT OBSERVED  ${call}`, '');
  lines.push('assumptions');
  for (const { id, verdict, reason } of report.assumptions)
    lines.push(`  ${verdict.padEnd(14)} ${id}${reason === null ? '' : `  (${reason})`}`);
  const { operations, statuses, fields } = report.coverage;
  lines.push(
    '',
    `seen: ${inShare(operations)} operations, ${inShare(statuses)} statuses, ${inShare(fields)} fields of answers`,
    ...(operations.missing.length > 0 ? [`not called: ${operations.missing.join(', ')}`] : []),
    '',
    `${report.result}: ${report.platform}, level ${report.level}`,
  );
  return lines.join('\n');
}

const namesOf = (names: readonly string[]) =>
  `${names.slice(0, maxNamed).join(', ')}${names.length > maxNamed ? ', ...' : ''}`;

/** A fact of a call once, where it is first seen, with the further exchanges of that call. */
function once(differences: readonly Difference[], exchanges: readonly Exchange[]) {
  const alsoIn = new Map<Difference, string[]>();
  const first = new Map<string, Difference>();
  for (const difference of differences) {
    const call = exchanges.find(({ name }) => name === difference.exchange)?.call ?? difference.exchange;
    const key = JSON.stringify([
      call,
      difference.fact,
      difference.expected,
      difference.found,
      difference.assumption,
      difference.verdict,
    ]);
    const known = first.get(key);
    if (known) alsoIn.set(known, [...(alsoIn.get(known) ?? []), difference.exchange]);
    else first.set(key, difference);
  }
  return { shown: [...first.values()], alsoIn };
}

const inShare = ({ seen, all }: Share) => `${seen} of ${all}`;

function differenceInWords({ expected, found }: Difference): string {
  if (expected === null) return `${found}, which is more than the kit knows`;
  return found === null ? `expected ${expected}, and it is not there` : `expected ${expected}, and it is ${found}`;
}
