import * as z from 'zod';
import { verdicts } from '../../drift/compare.ts';
import { levels } from '../../drift/target.ts';

/** The file that `drift --json` writes, as far as a decision needs it. */
export const platformReport = z.looseObject({
  format: z.literal('marketplace-drift/1'),
  platform: z.string(),
  level: z.enum(levels),
  result: z.enum(verdicts),
  finishedAt: z.iso.datetime('is missing: run drift of this release'),
  differences: z.array(z.looseObject({ exchange: z.string(), fact: z.string(), verdict: z.string() })),
  unmade: z.array(z.string()),
  exchanges: z
    .array(
      z.looseObject({
        name: z.string(),
        call: z.string().nullable(),
        method: z.string(),
        facts: z.record(z.string(), z.string()),
        unreadable: z.string().nullable(),
      }),
    )
    .min(1),
});
export type PlatformReport = z.output<typeof platformReport>;
