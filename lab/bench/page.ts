import { laidOut } from '../../scripts/laid-out.ts';
import { isMet, tableOf, type BenchRow } from './rows.ts';

export interface BenchResult {
  /** ISO 8601. */
  readonly at: string;
  readonly machine: string;
  /** Versions of the peers. Missing in older results. */
  readonly peers?: readonly string[];
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
  outages: 'Restarts and outages',
  fleet: 'A fleet on PostgreSQL',
  crowded: 'Many launches and runs',
  referee: 'The referee in front of a platform',
  pages: 'Pages',
  'first-certified': 'From nothing to a certified app',
};

/** `docs/performance.md`, made of what was measured. */
export async function pageOf(benches: BenchResults): Promise<string> {
  const rows = Object.values(benches).flatMap((one) => one.rows);
  const text = `# Performance

This page is for operators who size machines, and for people who change the kit. \`npm run bench -- --write\` makes this page. ${rows.filter(isMet).length} of ${rows.length} goals are met.

The machines are shared, and seconds differ by half from day to day. Read the ratios: the kit and its peer were measured in one run, in turns, on the same bytes and the same disk. Below 1, the kit takes less time, CPU or memory than its peer. For throughput, above 1 is better. Values are medians; the range is in parentheses.

## Limits outside the kit

- The app asks for a decision every 2 to 5 seconds, as the interface requires. On average half an interval passes between an approval and the poll that sees it.
- An upload cannot be faster than a copy of the same file, so \`cp\` is its peer.
- A Cloud Optimized GeoTIFF is compressed by GDAL, on every core. Compression dominates the run time of any step that writes one, and GDAL's own programs pay the same cost.
- An acknowledged part survives the end of the process, not a power cut ([Reliability](reliability.md)).

${Object.entries(benches)
  .map(
    ([name, { at, machine, peers = [], rows: own }]) =>
      `## ${titles[name] ?? name}\n\n\`npm run bench -- --only ${name}\`, ${[at.slice(0, 10), machine, ...peers].join(', ')}\n\n${tableOf(own)}\n`,
  )
  .join('\n')}`;
  return laidOut('docs/performance.md', text);
}
