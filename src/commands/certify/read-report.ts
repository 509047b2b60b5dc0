import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import { KitError } from '../../contract/index.ts';
import { exitStatusOf, type ExpectedFailure, type Report } from './report.ts';
import { levels, type Level } from './scenarios.ts';
import { codeOf } from '../../files/index.ts';

const outcome = z.enum(['PASSED', 'WARNING', 'FAILED', 'NOT_EXERCISED']);
/** Fields that the verification reads. The signature is over all of them. */
const report = z.looseObject({
  format: z.literal('marketplace-app-certification/1'),
  planVersion: z.string(),
  app: z.string(),
  finishedAt: z.iso.datetime(),
  status: z.enum(['WAITING', 'RUNNING', 'FINISHED', 'INTERRUPTED']),
  result: outcome,
  level: z.enum(levels).nullable(),
  challenge: z.looseObject({ seed: z.string() }).nullable(),
  expected: z.object({ met: z.array(z.string()), unmet: z.array(z.string()) }),
  scenarios: z
    .array(
      z.looseObject({
        id: z.string(),
        launches: z.array(z.looseObject({ sha256: z.string(), calls: z.array(z.unknown()) })),
      }),
    )
    .min(1),
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
  const { error } = report.safeParse(value);
  const [issue] = error?.issues ?? [];
  if (issue) throw isNone(`${issue.path.join('.') || 'it'}: ${issue.message}`);
  // Returns the parsed file itself, because the signature covers every field in its order.
  return value as Report;
}

/** Finds the first demand that a report does not meet; null if it meets all. Expected failures count unless they are allowed by name. */
export function unmetDemand(
  report: Report,
  demanded: {
    readonly level: Level | null;
    readonly challenge: string | null;
    readonly allowed: readonly ExpectedFailure[];
  },
): string | null {
  const allowed = new Set(demanded.allowed.map(({ scenario, rule }) => `${scenario}: ${rule}`));
  const more = report.expected.met.filter((name) => !allowed.has(name));
  if (more.length > 0)
    return `${more.length} failures were expected when certify ran, and are not allowed here (${more.join('; ')}): --expect FILE allows them by name`;
  if (demanded.challenge !== null && report.challenge?.seed !== demanded.challenge)
    return `the challenge ${demanded.challenge} is demanded, and the report is of ${report.challenge?.seed ?? 'none'}`;
  if (exitStatusOf(report) !== 0) return `the report is ${report.status} ${report.result}`;
  if (exitStatusOf(report, demanded.level) !== 0)
    return `the level ${demanded.level} is demanded, and the report reached ${report.level ?? 'none'}`;
  return null;
}
