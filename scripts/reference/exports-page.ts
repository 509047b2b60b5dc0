import ts from 'typescript';
import { publicExports, type PublicExport } from '../release/public-surface.ts';

const packageName = 'marketplace-app-kit';

/** Returns the page of all exports: each entry point with its names, their kinds and the first sentence of their comments. */
export function pageOfExports(): string {
  const byEntry = Map.groupBy(publicExports(), ({ entry }) => entry);
  const parts = [...byEntry].map(([entry, exports]) => {
    const rows = exports
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map((one) => `| \`${one.name}\` | ${kindOf(commented(one))} | ${firstSentence(one)} |`);
    return `## \`${packageName}${entry.slice(1)}\`\n\n| Name | Kind | About |\n| --- | --- | --- |\n${rows.join('\n')}`;
  });
  return `# Package exports

\`npm run lab -- scripts/reference.ts\` generates this page from the code. [Step API](step-api.md) has the types of a step in full. Your editor shows the other comments whole.

${parts.join('\n\n')}
`;
}

function kindOf({ flags }: ts.Symbol): string {
  if (flags & ts.SymbolFlags.Class) return 'class';
  if (flags & ts.SymbolFlags.Function) return 'function';
  if (flags & ts.SymbolFlags.Variable) return flags & ts.SymbolFlags.TypeAlias ? 'constant and type' : 'constant';
  return 'type';
}

/** An entry point that loads its module late exports a binding without a comment. The comment is that of the module's export. */
function commented({ name, symbol, checker }: PublicExport): ts.Symbol {
  const late = symbol.declarations?.find(ts.isBindingElement);
  const load = late && ts.isVariableDeclaration(late.parent.parent) ? late.parent.parent.initializer : undefined;
  if (!load) return symbol;
  const found = checker.getPropertyOfType(checker.getTypeAtLocation(load), name) ?? symbol;
  return found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
}

function firstSentence(one: PublicExport): string {
  const comment = commented(one).getDocumentationComment(one.checker);
  const text = ts.displayPartsToString(comment).replace(/\s+/g, ' ');
  const [first] = /^.*?[.:](?= [A-Z]|$)/.exec(text) ?? [text];
  return first.replaceAll('|', '\\|');
}
