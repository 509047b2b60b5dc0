/** Small mistakes of a tired engineer, made in the syntax tree of a module. */
import ts from 'typescript';

/** One mistake: the text from `start` to `end` is replaced. Lines count from 1. */
export interface Mutant {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Describes the mistake, as in `< becomes <=`. */
  readonly kind: string;
}

/** A comment with these words on the line of a mutant, or on the one before it, with a reason: the change makes no difference that anybody could see. */
const equivalent = /mutant: equivalent, because \S/;

const K = ts.SyntaxKind;
const operators = new Map<ts.SyntaxKind, string>([
  [K.LessThanToken, '<='],
  [K.LessThanEqualsToken, '<'],
  [K.GreaterThanToken, '>='],
  [K.GreaterThanEqualsToken, '>'],
  [K.EqualsEqualsEqualsToken, '!=='],
  [K.ExclamationEqualsEqualsToken, '==='],
  [K.AmpersandAmpersandToken, '||'],
  [K.BarBarToken, '&&'],
  [K.PlusToken, '-'],
  [K.MinusToken, '+'],
  [K.AsteriskToken, '/'],
  [K.SlashToken, '*'],
  [K.PlusEqualsToken, '-='],
  [K.MinusEqualsToken, '+='],
]);

/** Returns the mutants of a module, in the order of the text. */
export function mutantsOf(fileName: string, code: string): Mutant[] {
  const source = ts.createSourceFile(fileName, code, ts.ScriptTarget.Latest, true);
  const lines = code.split('\n');
  const found: Mutant[] = [];

  function add(node: ts.Node, text: string, kind: string): void {
    const start = node.getStart(source);
    const { line } = source.getLineAndCharacterOfPosition(start);
    if ([lines[line], lines[line - 1]].some((near) => near !== undefined && equivalent.test(near))) return;
    found.push({ line: line + 1, start, end: node.end, text, kind });
  }

  function visit(node: ts.Node): void {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return;
    if (ts.isBinaryExpression(node)) {
      const other = operators.get(node.operatorToken.kind);
      // Words joined by a plus are no sum.
      const isText = [node.left, node.right].some(
        (side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side),
      );
      if (other !== undefined && !isText)
        add(node.operatorToken, other, `${node.operatorToken.getText(source)} becomes ${other}`);
      if (node.operatorToken.kind === K.QuestionQuestionToken)
        add(node, node.left.getText(source), 'the default is left out');
    } else if (ts.isPrefixUnaryExpression(node) && node.operator === K.ExclamationToken) {
      add(node, node.operand.getText(source), 'a negation is left out');
    } else if (ts.isIfStatement(node)) {
      add(node.expression, 'false', 'a condition is never true');
      add(node.expression, 'true', 'a condition is always true');
    } else if (ts.isConditionalExpression(node)) {
      add(node.condition, `!(${node.condition.getText(source)})`, 'a choice is turned round');
    } else if (ts.isExpressionStatement(node) && isCall(node.expression)) {
      add(node, ';', 'a call is left out');
    } else if (ts.isNumericLiteral(node) && !isName(node)) {
      add(node, `(${node.text} + 1)`, 'a number is one more');
    } else if (node.kind === K.TrueKeyword || node.kind === K.FalseKeyword) {
      add(node, node.kind === K.TrueKeyword ? 'false' : 'true', 'true and false are confused');
    } else if (ts.isTryStatement(node) && node.finallyBlock && node.finallyBlock.statements.length > 0) {
      add(node.finallyBlock, '{}', 'nothing is cleaned up');
    }
    ts.forEachChild(node, visit);
  }
  visit(source);
  // A swap next to ?? does not parse.
  return found.filter((mutant) => parses(fileName, withMutant(code, mutant)));
}

/** True for the key of a member. */
const isName = ({ parent }: ts.NumericLiteral) => ts.isPropertyAssignment(parent) && ts.isNumericLiteral(parent.name);

const parses = (fileName: string, code: string): boolean =>
  (ts.transpileModule(code, { fileName, reportDiagnostics: true }).diagnostics ?? []).length === 0;

function isCall(expression: ts.Expression): boolean {
  if (ts.isAwaitExpression(expression) || ts.isVoidExpression(expression)) return isCall(expression.expression);
  // The constructor of a parent must be called.
  return ts.isCallExpression(expression) && expression.expression.kind !== K.SuperKeyword;
}

/** The module with one mistake. */
export const withMutant = (code: string, { start, end, text }: Mutant): string =>
  code.slice(0, start) + text + code.slice(end);
