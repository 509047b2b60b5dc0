import { laidOut } from '../../scripts/laid-out.ts';
import { isMet, tableOf, type BenchRow } from './rows.ts';

/** What one bench has measured. */
export interface BenchResult {
  /** ISO 8601. */
  readonly at: string;
  readonly machine: string;
  readonly rows: readonly BenchRow[];
}
export type BenchResults = Readonly<Record<string, BenchResult>>;

const titles: Readonly<Record<string, string>> = {
  upload: 'Uploads',
  steps: 'Steps',
  'child-start': 'The start of a step',
  commands: 'Commands',
  approval: 'From approval to upload',
  stac: 'The catalog',
  pgstac: 'The catalog beside pgstac',
  waiting: 'Waiting for approval',
  crowded: 'Many launches and runs',
  pages: 'Pages',
};

/** `docs/performance.md`, made of what was measured. */
export async function pageOf(benches: BenchResults): Promise<string> {
  const rows = Object.values(benches).flatMap((one) => one.rows);
  const text = `# Performance

Made by \`npm run bench -- --write\`: change the benches, not this page. ${rows.filter(isMet).length} of ${rows.length} goals are met.

These machines are shared, and seconds differ from day to day by half. Read the ratios: ours and the peer are measured in one run, on the same bytes and the same disk; where there are several rounds they take turns. A ratio of time, CPU or memory below 1 means that the kit takes less than its peer. A ratio of throughput above 1 means that the kit does more. Of several rounds the median stands first, the least and the most in parentheses.

## Limits that no code of ours moves

- The app asks for a decision every 2 to 5 seconds, as the interface demands. On average half an interval passes between an approval and the poll that sees it.
- An upload is bounded by a copy of the same file: \`cp\` stands beside it.
- A Cloud Optimized GeoTIFF is compressed by GDAL, on every core. Of a step that writes one this takes most of the time, and GDAL's own programs pay it too.
- An acknowledged part survives the end of the process, not a power cut: see [reliability.md](reliability.md).

${Object.entries(benches)
  .map(
    ([name, { at, machine, rows: own }]) =>
      `## ${titles[name] ?? name}\n\n\`npm run bench -- --only ${name}\`, ${at.slice(0, 10)}, ${machine}\n\n${tableOf(own)}\n`,
  )
  .join('\n')}`;
  return laidOut('docs/performance.md', text);
}
