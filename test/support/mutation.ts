/** One place of a source file, and what a mistake would have made of it. Where `from` breaks its lines does not matter. */
export interface Mutation {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Finds code however the formatter has laid it out: line breaks, and the commas and parentheses that come with them. */
export function codePattern(code: string): RegExp {
  const words = code.match(/[\w$]+|[^\s\w$]/g) ?? [];
  const pattern = words.map((word, i) => {
    const escaped = RegExp.escape(word);
    const before = words[i - 1];
    if (before === undefined) return escaped;
    const isJoined = /^[\w$]/.test(word) && /[\w$]$/.test(before);
    if (isJoined) return String.raw`\s+${escaped}`;
    return (/^[)\]}]$/.test(word) ? String.raw`,?\s*` : String.raw`\s*`) + escaped;
  });
  return new RegExp(pattern.join(''), 'g');
}
