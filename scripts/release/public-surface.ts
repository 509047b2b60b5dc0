/** Promises of the kit to those who build on it, as data. A release writes them down, and a test compares them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { migrations } from '../../src/app/migrations.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** By group and name: `exports/app/createApp` to its declaration without comments and bodies. */
export type Surface = Readonly<Record<string, string>>;

/** A release, as `lab/releases/<version>.json` has it. */
export interface ReleaseRecord {
  readonly version: string;
  /** The commit that it was made of, where forks may stand on it. */
  readonly commit?: string;
  readonly lastMigration: string;
  readonly surface?: Surface;
}

export function publicSurface(): Surface {
  return Object.fromEntries(
    Object.entries({ ...exportsSurface(), ...settingsSurface(), ...commandsSurface(), ...tablesSurface() }).sort(
      ([a], [b]) => (a < b ? -1 : 1),
    ),
  );
}

export interface PublicExport {
  /** Name of the entry point, as in package.json: `.` or `./app`. */
  readonly entry: string;
  readonly name: string;
  readonly symbol: ts.Symbol;
  readonly checker: ts.TypeChecker;
}

/** Returns the exports of all entry points of the package. */
export function publicExports(): PublicExport[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default?: string }>;
  };
  const entries = Object.entries(exports).flatMap(([entry, { default: path }]) =>
    path === undefined ? [] : [{ entry, file: join(root, path.replace('./dist/', 'src/').replace(/\.js$/, '.ts')) }],
  );
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    { noEmit: true },
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  )!;
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    config.options,
  );
  const checker = program.getTypeChecker();
  return entries.flatMap(({ entry, file }) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)!)!).map((exported) => ({
      entry,
      name: exported.name,
      symbol: exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported,
      checker,
    })),
  );
}

function exportsSurface(): Record<string, string> {
  const surface: Record<string, string> = {};
  for (const { entry, name, symbol, checker } of publicExports()) {
    const texts = (symbol.declarations ?? [])
      .filter((one) => !one.getSourceFile().fileName.includes('/node_modules/'))
      .map((one) => declarationText(one, checker));
    surface[`exports/${entry === '.' ? 'kit' : entry.slice(2)}/${name}`] = texts.join(' ') || 'of a package';
  }
  return surface;
}

const printer = ts.createPrinter({ removeComments: true });

/** Text of a type's declaration. For a value it is the text of its type, so that a body may change. */
function declarationText(declaration: ts.Declaration, checker: ts.TypeChecker): string {
  if (ts.isInterfaceDeclaration(declaration) || ts.isTypeAliasDeclaration(declaration))
    return inOneLine(printer.printNode(ts.EmitHint.Unspecified, declaration, declaration.getSourceFile()));
  if (ts.isClassDeclaration(declaration)) {
    const members = declaration.members.filter((member) => !(member.name && ts.isPrivateIdentifier(member.name)));
    const texts = members.map((member) =>
      ts.isConstructorDeclaration(member)
        ? `constructor(${member.parameters.map((parameter) => parameter.getText()).join(', ')})`
        : `${member.name?.getText()}: ${typeText(member, checker)}`,
    );
    return inOneLine(`class ${texts.join('; ')}`);
  }
  return typeText(declaration, checker);
}

function typeText(declaration: ts.Declaration, checker: ts.TypeChecker): string {
  const type = checker.getTypeAtLocation(declaration);
  return inOneLine(checker.typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation));
}

const inOneLine = (text: string) =>
  text
    .replace(/\s+/g, ' ')
    .replace(/^export /, '')
    .trim();

/** Names and defaults of the settings, as `docs/configuration.md` is held to them too. */
function settingsSurface(): Record<string, string> {
  const sources = {
    both: 'src/server/settings.ts',
    app: 'src/app/config.ts',
    sandbox: 'src/sandbox/config.ts',
    confinement: 'src/child/confinement-settings.ts',
  };
  return Object.fromEntries(
    Object.entries(sources).flatMap(([part, path]) => {
      const text = readFileSync(join(root, path), 'utf8');
      return [
        ...text.matchAll(/^ {2,4}([A-Z][A-Z_]+): ([^;]*?),?\n(?= {2,4}[A-Z]| {2,4}\.\.\.| *\}\)?[;,])/gm),
        ...text.matchAll(/readSecret\(env, '([A-Z_]+)'\)()/g),
      ].map(
        ([, name = '', rule = '']) =>
          [`settings/${part}/${name}`, /\.default\(([^)]*\)?)\)/.exec(inOneLine(rule))?.[1] ?? ''] as const,
      );
    }),
  );
}

/** Options of the commands. */
function commandsSurface(): Record<string, string> {
  const commands = ['app', 'certify/options', 'demo/options', 'dev', 'new', 'sandbox'];
  return Object.fromEntries(
    commands.map((name) => {
      const text = readFileSync(join(root, `src/commands/${name}.ts`), 'utf8');
      const options = [...text.matchAll(/'?\b([a-z][a-z-]*)'?: \{ type: '/g)].map(([, option]) => `--${option}`);
      return [`commands/${name.split('/')[0]}`, options.toSorted().join(' ')] as const;
    }),
  );
}

/** A migration that was released never changes: its digest tells. */
function tablesSurface(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(migrations).map(([name, { texts }]) => [
      `tables/${name}`,
      createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 16),
    ]),
  );
}

/** Promises that were removed or changed. A new promise asks nothing of anybody. */
export function brokenPromises(before: Surface, now: Surface): string[] {
  return Object.keys(before).filter((name) => inOrder(before[name]) !== inOrder(now[name]));
}

/** The compiler writes the words of an enum or a union in the order in which it met them first, which any import may change. */
function inOrder(type: string | undefined): string | undefined {
  return type
    ?.replace(/(?<=ZodEnum<\{ )[^{}]*(?= \}>)/g, (words) => words.split(/; ?/).toSorted().join())
    .replace(/"[^"]*"(?: \| "[^"]*")+/g, (words) => words.split(' | ').toSorted().join());
}

/** Broken promises that the section of `docs/upgrading.md` for the next release does not name in backticks. */
export function untold(broken: readonly string[], upgrading: string): string[] {
  const [, next = ''] = /^## Unreleased$([^]*?)(?=^## |(?![^]))/m.exec(upgrading) ?? [];
  const named = new Set([...next.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  // The name of a command is a word that any sentence may hold.
  const isTold = (name: string) =>
    named.has(name) || (!name.startsWith('commands/') && named.has(name.split('/').at(-1)));
  return broken.filter((name) => !isTold(name));
}
