import needs from '../../src/needs.json' with { type: 'json' };

const [begin, end] = ['<!-- needs: made by npm run lab -- scripts/reference.ts -->', '<!-- needs end -->'];

/** The page with the table of needed programs between its marks. Throws if the marks are not there. */
export function withNeeds(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`CONTRIBUTING.md needs the lines ${begin} and ${end}`);
  const rows = Object.values(needs).map(({ what, debian, installedBy, serves }) =>
    [what, debian.map((name) => `\`${name}\``).join(' '), `\`${installedBy}\``, serves].join(' | '),
  );
  const table = ['Program | Debian packages | Installed by | Serves', '--- | --- | --- | ---', ...rows];
  return `${page.slice(0, from)}${begin}\n\n${table.map((row) => `| ${row} |`).join('\n')}\n\n${page.slice(to)}`;
}
