const single = Symbol('_');
type Token = string | typeof single;

/**
 * CQL2's `like`: % is any characters, _ is one, a backslash takes the next as it is. The time that it takes grows with the
 * text and no faster, whatever the pattern: each part between two % is found by bits (shift-and), 32 characters of it at a time.
 */
export function likeMatcher(pattern: string): (text: string) => boolean {
  const parts = partsOf(pattern);
  const [first = [], ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return (text) => matchesAt([...text], 0, first) && [...text].length === first.length;
  const middle = rest.filter((part) => part.length > 0).map(finder);
  return (text) => {
    const characters = [...text];
    const end = characters.length - last.length;
    if (!matchesAt(characters, 0, first)) return false;
    let at = first.length;
    for (const find of middle) {
      // The earliest place leaves the most room for what follows.
      at = find(characters, at);
      if (at < 0) return false;
    }
    return at <= end && matchesAt(characters, end, last);
  };
}

/** Returns the parts between the pattern's %. */
function partsOf(pattern: string): Token[][] {
  const parts: Token[][] = [[]];
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i] ?? '';
    if (character === '%') parts.push([]);
    else if (character === '\\' && i + 1 < characters.length) parts.at(-1)?.push(characters[++i] ?? '');
    else parts.at(-1)?.push(character === '_' ? single : character);
  }
  return parts;
}

function matchesAt(text: readonly string[], at: number, part: readonly Token[]): boolean {
  return (
    at >= 0 && at + part.length <= text.length && part.every((token, i) => token === single || token === text[at + i])
  );
}

/** Finds the first place of `part` at or behind `from`, and answers where it ends; -1 where there is none. */
function finder(part: readonly Token[]): (text: readonly string[], from: number) => number {
  const words = Math.ceil(part.length / 32);
  /** Bit i: the part's character i may be this one. */
  const masks = new Map<string, Int32Array>();
  /** The same for a character that the part does not have. */
  const anything = maskOf(part, null);
  for (const token of part) if (token !== single && !masks.has(token)) masks.set(token, maskOf(part, token));
  const lastBit = 1 << ((part.length - 1) % 32);
  return (text, from) => {
    const state = new Int32Array(words);
    for (let at = from; at < text.length; at++) {
      const mask = masks.get(text[at] ?? '') ?? anything;
      let carry = 1;
      // State and mask have as many words; `?? 0` would take time for each character.
      for (let word = 0; word < words; word++) {
        const before = state[word] as number;
        state[word] = ((before << 1) | carry) & (mask[word] as number);
        carry = before >>> 31;
      }
      if (((state[words - 1] as number) & lastBit) !== 0) return at + 1; // a part has a word at least
    }
    return -1;
  };
}

function maskOf(part: readonly Token[], character: string | null): Int32Array {
  const mask = new Int32Array(Math.ceil(part.length / 32));
  part.forEach((token, i) => {
    if (token === single || token === character) mask[i >> 5] = (mask[i >> 5] ?? 0) | (1 << (i % 32));
  });
  return mask;
}
