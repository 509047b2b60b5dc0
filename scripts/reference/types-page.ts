/** The page of the step API, from the types and their comments. */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const source = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

/** By file: the types that a step's author meets. */
const shown: readonly (readonly [path: string, names: readonly string[]])[] = [
  ['steps/step.ts', ['StepJob']],
  ['raster/scene.ts', ['Scene', 'SceneBand']],
  ['raster/match-band.ts', ['NamedBand']],
  ['raster/features.ts', ['Features']],
  ['raster/cog.ts', ['createRaster', 'nameBands', 'writeCog', 'gridOf', 'NewRaster', 'Grid', 'CogOptions']],
  ['raster/block-walk.ts', ['walkStrips']],
  ['raster/scene.ts', ['requireSameGrid']],
  ['steps/pixel-step.ts', ['PixelStep', 'PixelFunctions', 'PixelStepOutput', 'PixelOutput', 'writePixels']],
  ['steps/estimate.ts', ['estimateCog']],
  ['child/protocol.ts', ['JobContext']],
  ['raster/preview.ts', ['PreviewStyle']],
  ['raster/class-table.ts', ['RasterClass']],
  ['steps/step.ts', ['EstimateInput', 'StepEstimate', 'BandDeclaration', 'RasterInput', 'VectorInput', 'RasterOutput', 'VectorOutput', 'FileOutput']], // oxfmt-ignore
  ['steps/area.ts', ['Area', 'AreaLimits']],
];

export function pageOfTypes(): string {
  const program = ts.createProgram([...new Set(shown.map(([path]) => source(path)))], {
    allowImportingTsExtensions: true,
    module: ts.ModuleKind.NodeNext,
    noEmit: true,
    skipLibCheck: true,
    noResolve: true,
  });
  const parts = shown.flatMap(([path, names]) => {
    const file = program.getSourceFile(source(path))!;
    return names.map((name) => sectionOf(file, name));
  });
  return `# Step API

\`npm run lab -- scripts/reference.ts\` generates this page from the types and their comments. The host calls a step's \`run\` with a \`StepJob\`, in a separate process.

${parts.join('\n\n')}
`;
}

function sectionOf(file: ts.SourceFile, name: string): string {
  const found = file.statements.find(
    (one) =>
      (ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one) || ts.isFunctionDeclaration(one)) &&
      one.name?.text === name,
  );
  if (!found) throw new Error(`${file.fileName} has no ${name}`);
  const about = commentOf(file, found);
  const intro = `## \`${name}\`${about === '' ? '' : `\n\n${about}`}`;
  if (ts.isInterfaceDeclaration(found)) {
    const base = found.heritageClauses
      ?.flatMap(({ types }) => types.map((one) => one.expression.getText(file)))
      .join(', ');
    const rows = found.members.map((member) => {
      const { name: key, text } = memberOf(file, member);
      const said = commentOf(file, member);
      return `- \`${key}\`: \`${text}\`${said === '' ? '' : `. ${said}`}`;
    });
    return [intro, base ? `Has all of \`${base}\`, and:` : '', rows.join('\n')]
      .filter((part) => part !== '')
      .join('\n\n');
  }
  const text = ts.isFunctionDeclaration(found)
    ? file.text.slice(found.getStart(file), found.body!.getStart(file)).replace(/^export (async )?/, '')
    : found.getText(file).replace(/^export /, '');
  return `${intro}\n\n\`\`\`ts\n${text.trim()}\n\`\`\``;
}

function memberOf(file: ts.SourceFile, member: ts.TypeElement): { name: string; text: string } {
  const name = member.name?.getText(file) ?? '';
  const isOptional = member.questionToken !== undefined;
  const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
  if (ts.isPropertySignature(member))
    return { name: `${name}${isOptional ? '?' : ''}`, text: oneLine(member.type?.getText(file) ?? '') };
  return {
    name,
    text: oneLine(
      member
        .getText(file)
        .replace(/^\/\*\*[^]*?\*\/\s*/, '')
        .replace(/;$/, ''),
    ),
  };
}

/** The doc comment, as one line. */
function commentOf(file: ts.SourceFile, node: ts.Node): string {
  const [last] = (ts.getLeadingCommentRanges(file.text, node.getFullStart()) ?? []).toReversed();
  const text = last ? file.text.slice(last.pos, last.end) : '';
  if (!text.startsWith('/**')) return '';
  return text
    .replace(/^\/\*\*|\*\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}
