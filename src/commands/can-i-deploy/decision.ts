import { interfaceCalls } from '../../contract/index.ts';
import type { KeyObject } from 'node:crypto';
import { unmetDemand } from '../certify/read-report.ts';
import { contradiction } from '../certify/recheck.ts';
import type { Report } from '../certify/report.ts';
import type { Level } from '../certify/scenarios.ts';
import { faultOfReport } from '../certify/sign.ts';
import type { PlatformReport } from './platform-report.ts';

type PlatformExchange = PlatformReport['exchanges'][number];

/** A report cannot be of the future; clocks differ by less. */
const clockToleranceMs = 5 * 60_000;

const isAnswered = ({ method, facts }: PlatformExchange) => method !== '' && /^2/.test(facts['status'] ?? '');

/** Endpoints that an app called with success while it was certified. */
function usedBy({ scenarios }: Report): Set<string> {
  const calls = scenarios.flatMap(({ launches }) => launches.flatMap((launch) => launch.calls));
  return new Set(
    calls
      .filter(({ delivered, status }) => delivered && status !== null && status < 300)
      .map(({ endpoint }) => endpoint),
  );
}

const callsOf = (endpoint: string) =>
  Object.entries(interfaceCalls).flatMap(([name, row]) => (row.endpoint === endpoint ? [name] : []));

export interface DeployDemands {
  /** The key that must have signed the report. */
  readonly key: KeyObject;
  readonly level: Level;
  /** Launch address or name of the app; null for any. */
  readonly app: string | null;
  /** Maximum age of the report and of the comparison, ms. */
  readonly maxAgeMs: number;
  /** Epoch milliseconds. Default: now. */
  readonly nowMs?: number;
}

/** Reason why an app must not go live on a platform; null if nothing speaks against it. Judges the traces of the report again. */
export async function reasonAgainst(
  report: Report,
  platform: PlatformReport,
  { key, level, app, maxAgeMs, nowMs = Date.now() }: DeployDemands,
): Promise<string | null> {
  return (
    (await faultOfReport(report, key)) ??
    contradiction(report) ??
    unmetDemand(report, { level, challenge: null, allowed: [], app, maxAgeMs, nowMs }) ??
    platformReasonAgainst(report, platform, { maxAgeMs, nowMs })
  );
}

/**
 * Reason why a verified app must not go live on a platform; null if nothing speaks against it. Each call that the app made while it was certified must
 * have been answered by the platform in a form that the wire profile reads, and no difference of such a call may break the app.
 */
function platformReasonAgainst(
  app: Report,
  platform: PlatformReport,
  { maxAgeMs, nowMs }: Required<Pick<DeployDemands, 'maxAgeMs' | 'nowMs'>>,
): string | null {
  const ageMs = nowMs - Date.parse(platform.finishedAt);
  if (ageMs < -clockToleranceMs) return `the comparison says that it was made in the future (${platform.finishedAt})`;
  if (ageMs > maxAgeMs) return `the platform was compared at ${platform.finishedAt}, longer ago than --max-age allows`;
  const used = usedBy(app);
  if (used.size === 0) return 'the report of the app has no call that was answered';
  const calls = new Map([...used].map((endpoint) => [endpoint, callsOf(endpoint)]));
  for (const [endpoint, names] of calls) {
    // Links to data are no calls of the interface.
    if (names.length === 0) continue;
    const made = platform.exchanges.filter(
      ({ call, method }) => call !== null && method !== '' && names.includes(call),
    );
    if (made.length === 0)
      return `the app calls ${endpoint}, and the platform was not asked it: run drift with --level write`;
    const answered = made.filter(isAnswered);
    if (answered.length === 0)
      return `the app calls ${endpoint}, and the platform answered it with ${made[0]?.facts['status'] ?? 'nothing'}`;
    const unread = answered.find(({ unreadable }) => unreadable !== null);
    if (unread) return `the app cannot read the platform's answer to ${endpoint}: ${unread.unreadable}`;
  }
  const names = new Set([...calls.values()].flat());
  const callOf = new Map(platform.exchanges.map(({ name, call }) => [name, call]));
  const breaking = platform.differences.find(
    ({ verdict, exchange }) => verdict === 'breaks the app' && names.has(callOf.get(exchange) ?? ''),
  );
  if (breaking) return `a difference breaks the app: ${breaking.exchange} ${breaking.fact}`;
  const worse = platform.differences.find(({ exchange }) => !callOf.has(exchange));
  return worse ? `the comparison has a difference of ${worse.exchange}, which it did not ask` : null;
}
