const any = Symbol('%');
const one = Symbol('_');

/**
 * CQL2's `like`: % is any characters, _ is one, a backslash takes the next as it is. Never more steps than
 * text times pattern, which a regular expression of the same meaning would not promise.
 */
export function likeMatcher(pattern: string): (text: string) => boolean {
  const tokens: (string | typeof any | typeof one)[] = [];
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i] as string;
    if (character === '\\' && i + 1 < characters.length) tokens.push(characters[++i] as string);
    else tokens.push(character === '%' ? any : character === '_' ? one : character);
  }
  return (text) => matches([...text], tokens);
}

function matches(text: readonly string[], tokens: readonly (string | symbol)[]): boolean {
  let [at, token] = [0, 0];
  // Where the last % stands, and from where the text after it is tried.
  let [lastAny, retryAt] = [-1, 0];
  while (at < text.length) {
    const wanted = tokens[token];
    if (wanted === any) {
      lastAny = token++;
      retryAt = at;
    } else if (wanted === one || (wanted !== undefined && wanted === text[at])) {
      token++;
      at++;
    } else if (lastAny >= 0) {
      token = lastAny + 1;
      at = ++retryAt;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every((rest) => rest === any);
}
