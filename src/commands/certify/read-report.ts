import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import { isShallow, KitError, permissions, tooDeep } from '../../contract/index.ts';
import { exitStatusOf, type ExpectedFailure, type Report } from './report.ts';
import { levels, type Level } from './scenarios.ts';
import { codeOf } from '../../files/index.ts';
import { results } from '../../sandbox/referee/verdict.ts';

const outcome = z.enum(['PASSED', 'WARNING', 'FAILED', 'NOT_EXERCISED']);
const status = z.enum(['WAITING', 'RUNNING', 'FINISHED', 'INTERRUPTED']);
const judgedRule = z.looseObject({
  rule: z.string(),
  clause: z.string(),
  holds: z.string(),
  result: z.enum(results),
  violations: z.array(z.looseObject({ severity: z.enum(['failed', 'warning']) })),
  violationCount: z.int().min(0),
});
const tracedCall = z.looseObject({
  id: z.int(),
  at: z.iso.datetime(),
  endpoint: z.string(),
  status: z.int().nullable(),
  durationMs: z.number(),
  delivered: z.boolean(),
  detail: z.record(z.string(), z.unknown()),
});
const permissionList = z.array(z.enum(permissions));
/** Fields that the verification reads. The signature is over all of them. */
const report = z.looseObject({
  format: z.literal('marketplace-app-certification/2'),
  planVersion: z.string(),
  limits: z.object({ pollIntervalMs: z.object({ min: z.number().min(0), max: z.number().min(0) }) }),
  app: z.string(),
  appName: z.string().nullable(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  status,
  result: outcome,
  level: z.enum(levels).nullable(),
  challenge: z.looseObject({ seed: z.string() }).nullable(),
  expected: z.object({ met: z.array(z.string()), unmet: z.array(z.string()) }),
  rules: z.array(z.looseObject({ rule: z.string(), result: outcome })),
  permissions: z.object({ granted: permissionList, used: permissionList, denied: permissionList }).optional(),
  scenarios: z
    .array(
      z.looseObject({
        id: z.string(),
        title: z.string(),
        level: z.enum(levels),
        appName: z.string().nullable(),
        status,
        result: outcome,
        missing: z.object({ severity: z.enum(['failed', 'warning']), message: z.string() }).nullable(),
        faults: z.array(z.looseObject({ endpoint: z.string(), times: z.int(), fired: z.int() })),
        rules: z.array(judgedRule),
        advisories: z.array(judgedRule),
        launches: z.array(
          z.looseObject({
            launchId: z.string(),
            sha256: z.string(),
            cutCalls: z.int().min(0),
            calls: z.array(tracedCall).max(10_000),
          }),
        ),
      }),
    )
    .min(1)
    .max(100),
  tracesSha256: z.string(),
  signature: z.strictObject({ protected: z.string(), signature: z.string() }).optional(),
});

/** Reads a report that `certify --json` wrote. Throws `KitError` for anything else, with the field that is wrong. */
export async function readReport(path: string): Promise<Report> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${codeOf(error)})`);
  });
  const isNone = (why: string) =>
    new KitError('bad_arguments', `${path} is not a report of certify (--json FILE writes one): ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw isNone('it is not JSON, or not the whole of it');
  }
  if (!isShallow(value)) throw isNone(`it ${tooDeep}`);
  const { error } = report.safeParse(value);
  const [issue] = error?.issues ?? [];
  if (issue) throw isNone(`${issue.path.join('.') || 'it'}: ${issue.message}`);
  // Returns the parsed file itself, because the signature covers every field in its order.
  return value as Report;
}

export interface Demands {
  readonly level: Level | null;
  readonly challenge: string | null;
  readonly allowed: readonly ExpectedFailure[];
  /** Launch address or name of the app that the report must be of; null for any. */
  readonly app?: string | null;
  /** Maximum age of the report, ms; null for any. */
  readonly maxAgeMs?: number | null;
  readonly nowMs?: number;
}

/** A report cannot be of the future; clocks differ by less. */
const clockToleranceMs = 5 * 60_000;

/** Finds the first demand that a report does not meet; null if it meets all. Expected failures count unless they are allowed by name. */
export function unmetDemand(
  report: Report,
  { level, challenge, allowed, app = null, maxAgeMs = null, nowMs = Date.now() }: Demands,
): string | null {
  const names = new Set(allowed.map(({ scenario, rule }) => `${scenario}: ${rule}`));
  const more = report.expected.met.filter((name) => !names.has(name));
  const ageMs = nowMs - Date.parse(report.finishedAt);
  if (app !== null && app !== report.app && app !== report.appName)
    return `the app ${app} is demanded, and the report is of ${report.app} (${report.appName ?? 'without a name'})`;
  if (ageMs < -clockToleranceMs) return `it says that it was finished in the future (${report.finishedAt})`;
  if (maxAgeMs !== null && ageMs > maxAgeMs)
    return `it was finished at ${report.finishedAt}, longer ago than --max-age allows`;
  if (more.length > 0)
    return `${more.length} failures were expected when certify ran, and are not allowed here (${more.join('; ')}): --expect FILE allows them by name`;
  if (challenge !== null && report.challenge?.seed !== challenge)
    return `the challenge ${challenge} is demanded, and the report is of ${report.challenge?.seed ?? 'none'}`;
  if (exitStatusOf(report) !== 0) return `the report is ${report.status} ${report.result}`;
  if (exitStatusOf(report, level) !== 0)
    return `the level ${level} is demanded, and the report reached ${report.level ?? 'none'}`;
  return null;
}
