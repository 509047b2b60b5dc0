import * as z from 'zod';
import type { Observations } from '../../drift/compare.ts';
import type { KnownDifference } from '../../drift/report.ts';
import { levels } from '../../drift/target.ts';

/** A file of `--expect`. */
export const knownDifferences: z.ZodType<KnownDifference[]> = z.array(
  z.strictObject({ exchange: z.string(), fact: z.string() }),
);
/** A file of `--record`. */
export const recording = z.object({
  format: z.literal('marketplace-drift-record/1'),
  level: z.enum(levels),
  /** The record holds an app's own calls, and not the probes. */
  observed: z.boolean().optional(),
  missing: z.record(z.string(), z.string()),
  exchanges: z.array(
    z.object({
      name: z.string(),
      call: z.custom<Observations['exchanges'][number]['call']>((value) => value === null || typeof value === 'string'),
      method: z.string(),
      path: z.string(),
      requestBody: z.string().nullable(),
      responseBody: z.string(),
      facts: z.record(z.string(), z.string()),
      unreadable: z.string().nullable(),
      isOfApp: z.boolean(),
    }),
  ),
});
