import { assumptions } from '../../src/contract/assumptions.ts';

const [begin, end] = ['<!-- assumptions: made by npm run lab -- scripts/reference.ts -->', '<!-- assumptions end -->'];

/** The page with the table of all assumptions between its marks. Throws where the marks are not there. */
export function withAssumptions(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/contract.md needs the lines ${begin} and ${end}`);
  const rows = assumptions.map(({ id, clause, assumes, file, symbol, probe }) =>
    [
      `\`${id}\``,
      clause,
      assumes.replaceAll('|', '\\|'),
      `\`${file.replace(/^contract\//, '')}\`, \`${symbol}\``,
      typeof probe === 'string' ? `\`${probe}\`` : `by hand: ${probe.byHand}`,
    ].join(' | '),
  );
  const table = ['name | section | assumed | where | what tells', '--- | --- | --- | --- | ---', ...rows];
  return `${page.slice(0, from)}${begin}\n\n${table.map((row) => `| ${row} |`).join('\n')}\n\n${page.slice(to)}`;
}
