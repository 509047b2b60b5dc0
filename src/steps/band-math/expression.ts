/** Arithmetic over bands, parsed and never handed to JavaScript. */
export interface Expression {
  /** Names of the bands that it takes, in the order in which they come up; a name in quotation marks may hold anything. */
  readonly bands: readonly string[];
  /** Computes `count` pixels of the bands, in the order of `bands`, into `out`. */
  evaluate(values: readonly ArrayLike<number>[], out: { [i: number]: number }, count: number): void;
}

/** The text is no expression. The message says why and where. */
export class ExpressionError extends Error {}

type Values = ArrayLike<number>;
/** Gives the values of a part for `count` pixels. */
type Node = (bands: readonly Values[], count: number) => Values;

const maxCharacters = 1_000;
const maxDepth = 50;
const token =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_][A-Za-z0-9_]*)|"([^"]{1,64})"|(\*\*|[<>=!]=|&&|\|\||[-+*/^(),<>!]))/y;

const functions: Readonly<Record<string, { readonly arity: number; readonly of: (...values: number[]) => number }>> = {
  sqrt: { arity: 1, of: Math.sqrt },
  abs: { arity: 1, of: Math.abs },
  exp: { arity: 1, of: Math.exp },
  log: { arity: 1, of: Math.log },
  log10: { arity: 1, of: Math.log10 },
  min: { arity: 2, of: Math.min },
  max: { arity: 2, of: Math.max },
  floor: { arity: 1, of: Math.floor },
  mod: { arity: 2, of: (a, b) => a - b * Math.floor(a / b) },
  where: { arity: 3, of: (isSo, a, b) => (Number.isNaN(isSo) ? NaN : isSo === 0 ? b : a) },
};

/** Comparisons give 1 or 0, and NaN if a side has no value. */
const comparisons: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '&&': (a, b) => a !== 0 && b !== 0,
  '||': (a, b) => a !== 0 || b !== 0,
};

interface Token {
  readonly kind: 'number' | 'name' | 'band' | 'sign' | 'end';
  readonly text: string;
  /** From 1. */
  readonly at: number;
}

function tokensOf(text: string): Token[] {
  if (text.length > maxCharacters) throw new ExpressionError(`must have at most ${maxCharacters} characters`);
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  for (token.lastIndex = 0; token.lastIndex < end;) {
    const from = token.lastIndex;
    const [found, number, name, band, sign] = token.exec(text) ?? [];
    if (found === undefined) {
      const at = from + text.slice(from).search(/\S/);
      throw new ExpressionError(
        `has something at character ${at + 1} that is no number, band or sign: ${text.slice(at, at + 10)}`,
      );
    }
    const at = from + found.search(/\S/) + 1;
    if (number !== undefined) tokens.push({ kind: 'number', text: number, at });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name, at });
    else if (band !== undefined) tokens.push({ kind: 'band', text: band, at });
    else tokens.push({ kind: 'sign', text: sign ?? '', at });
  }
  return [...tokens, { kind: 'end', text: 'the end', at: text.length + 1 }];
}

/**
 * Parses `(nir - red) / (nir + red)`: numbers, bands, `+ - * / ^` (also `**`), comparisons `< <= > >= == !=` and `! && ||` (1 if true, else 0),
 * parentheses, `sqrt abs exp log log10 min max floor mod`, and `where(condition, a, b)`. Throws `ExpressionError`, which says where.
 */
export function parseExpression(text: string, constants: Readonly<Record<string, number>> = {}): Expression {
  const tokens = tokensOf(text);
  const bands: string[] = [];
  let [next, depth] = [0, 0];
  const here = () => tokens[next]!;
  const isSign = (...signs: string[]) => here().kind === 'sign' && signs.includes(here().text);
  const expect = (sign: string) => {
    if (!isSign(sign)) throw new ExpressionError(`needs ${sign} at character ${here().at}, and has ${here().text}`);
    next += 1;
  };

  /** From the weakest: or, and, comparison, sum. */
  function whole(): Node {
    depth += 1;
    if (depth > maxDepth) throw new ExpressionError(`must not be nested more than ${maxDepth} deep`);
    const value = chain(() => chain(() => chain(sum, '<', '<=', '>', '>=', '==', '!='), '&&'), '||');
    depth -= 1;
    return value;
  }

  function chain(part: () => Node, ...signs: string[]): Node {
    let left = part();
    while (isSign(...signs)) {
      const of = comparisons[tokens[next++]!.text]!;
      left = zipped((a, b) => (Number.isNaN(a) || Number.isNaN(b) ? NaN : Number(of(a, b))), left, part());
    }
    return left;
  }

  function sum(): Node {
    let left = product();
    while (isSign('+', '-')) left = combined(tokens[next++]!.text, left, product());
    return left;
  }

  function product(): Node {
    let left = signed();
    while (isSign('*', '/')) left = combined(tokens[next++]!.text, left, signed());
    return left;
  }

  function signed(): Node {
    if (!isSign('-', '+', '!')) return power();
    depth += 1;
    if (depth > maxDepth) throw new ExpressionError(`must not be nested more than ${maxDepth} deep`);
    const { text: sign } = tokens[next++]!;
    const value = signed();
    depth -= 1;
    if (sign === '!') return mapped((operand) => (Number.isNaN(operand) ? NaN : Number(operand === 0)), value);
    return sign === '-' ? mapped((operand) => -operand, value) : value;
  }

  /** Binds stronger than a sign before it, and to the right. */
  function power(): Node {
    const base = primary();
    if (!isSign('^', '**')) return base;
    next += 1;
    return combined('^', base, signed());
  }

  function primary(): Node {
    const { kind, text: word, at } = here();
    next += 1;
    if (kind === 'number') return constant(Number(word));
    if (kind === 'band') return bandNode(word);
    if (kind === 'name' && isSign('(')) return call(word, at);
    if (kind === 'name') return Object.hasOwn(constants, word) ? constant(constants[word]!) : bandNode(word);
    if (kind === 'sign' && word === '(') {
      const inner = whole();
      expect(')');
      return inner;
    }
    throw new ExpressionError(`needs a number, a band or ( at character ${at}, and has ${word}`);
  }

  function call(name: string, at: number): Node {
    const known = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (!known)
      throw new ExpressionError(
        `has no function ${name} (character ${at}); known are ${Object.keys(functions).join(', ')}`,
      );
    expect('(');
    const given = [whole()];
    while (isSign(',')) {
      next += 1;
      given.push(whole());
    }
    expect(')');
    if (given.length !== known.arity)
      throw new ExpressionError(`gives ${name} ${given.length} values at character ${at}, and it takes ${known.arity}`);
    // The function takes so many, and the others are not read.
    const [a, b, c] = given as [Node, Node, Node];
    if (known.arity === 3) return joined(known.of, a, b, c);
    return known.arity === 1 ? mapped(known.of, a) : zipped(known.of, a, b);
  }

  function bandNode(name: string): Node {
    const known = bands.indexOf(name);
    const index = known >= 0 ? known : bands.push(name) - 1;
    return (values) => values[index]!;
  }

  const root = whole();
  if (here().kind !== 'end')
    throw new ExpressionError(`must end at character ${here().at}, and goes on with ${here().text}`);
  if (bands.length === 0) throw new ExpressionError('must name a band');
  return {
    bands,
    evaluate(values, out, count) {
      const result = root(values, count);
      for (let i = 0; i < count; i++) out[i] = result[i]!;
    },
  };
}

/** A part's values, kept from strip to strip. */
function buffered(fill: (out: Float64Array, bands: readonly Values[], count: number) => void): Node {
  let out = new Float64Array(0);
  return (bands, count) => {
    if (out.length < count) out = new Float64Array(count);
    fill(out, bands, count);
    return out;
  };
}

function constant(value: number): Node {
  let out = new Float64Array(0);
  return (_bands, count) => (out.length < count ? (out = new Float64Array(count).fill(value)) : out);
}

const mapped = (of: (value: number) => number, node: Node): Node =>
  buffered((out, bands, count) => {
    const values = node(bands, count);
    for (let i = 0; i < count; i++) out[i] = of(values[i]!);
  });

const zipped = (of: (a: number, b: number) => number, left: Node, right: Node): Node =>
  buffered((out, bands, count) => {
    const [a, b] = [left(bands, count), right(bands, count)];
    for (let i = 0; i < count; i++) out[i] = of(a[i]!, b[i]!);
  });

const joined = (of: (a: number, b: number, c: number) => number, ...parts: readonly [Node, Node, Node]): Node =>
  buffered((out, bands, count) => {
    const [a, b, c] = [parts[0](bands, count), parts[1](bands, count), parts[2](bands, count)];
    for (let i = 0; i < count; i++) out[i] = of(a[i]!, b[i]!, c[i]!);
  });

/** The four signs in loops of their own, which the compiler makes fast. */
function combined(sign: string, left: Node, right: Node): Node {
  if (sign === '^') return zipped(Math.pow, left, right);
  return buffered((out, bands, count) => {
    const [a, b] = [left(bands, count), right(bands, count)];
    if (sign === '+') for (let i = 0; i < count; i++) out[i] = a[i]! + b[i]!;
    else if (sign === '-') for (let i = 0; i < count; i++) out[i] = a[i]! - b[i]!;
    else if (sign === '*') for (let i = 0; i < count; i++) out[i] = a[i]! * b[i]!;
    else for (let i = 0; i < count; i++) out[i] = a[i]! / b[i]!;
  });
}
