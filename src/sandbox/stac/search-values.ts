/** Values of properties in the form that the database compares: numbers as they are, texts behind `t`, all others as JSON behind `u`. In SQLite's order, numbers come first, then texts by code points, then others. */
import { parseInstant } from '../../contract/index.ts';

/** Null if the item has no value. */
export type SearchValue = number | string | null;

/** SQL of one JSONB object with the search value of each property that `json` has. Integers over 2^53 become doubles, as in JSON of JavaScript. Null for JSON of over 1,000 levels, which SQLite does not read. */
export const searchValuesOf = (json: string): string =>
  `iif(json_valid(${json}), (select jsonb_group_object(key, case type when 'integer' then iif(value between -9007199254740992 and 9007199254740992, value, cast(value as real))
    when 'real' then value when 'text' then 't' || value
    when 'true' then 'utrue' when 'false' then 'ufalse' else 'u' || value end) from json_each(${json}) where type <> 'null'), null)`;

export function searchValue(value: string | number | boolean | null): SearchValue {
  return typeof value === 'string' ? `t${value}` : typeof value === 'boolean' ? `u${value}` : value;
}

export const isText = (value: SearchValue): value is string => typeof value === 'string' && value.startsWith('t');

/** Epoch milliseconds if the value is a text with an RFC 3339 timestamp. */
export function instantOf(value: SearchValue): number | null {
  return isText(value) ? parseInstant(value.slice(1)) : null;
}

/** By code points, as SQLite orders texts. UTF-16 units have another order from U+D800 on. */
function compareTexts(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let i = 0;
  while (i < most && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i === most ? a.length - b.length : placeOf(a.charCodeAt(i)) - placeOf(b.charCodeAt(i));
}

/** Surrogates stand for code points behind all others. */
const placeOf = (unit: number) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

const isBoolean = (value: SearchValue) => value === 'utrue' || value === 'ufalse';

/** Negative if `a` comes first. Null if the two cannot be compared. Two timestamps compare by their time. */
export function orderOf(a: SearchValue, b: SearchValue): number | null {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [x, y] = [instantOf(a), instantOf(b)];
  if (x !== null && y !== null) return x - y;
  const areAlike = (isText(a) && isText(b)) || (isBoolean(a) && isBoolean(b));
  return areAlike ? compareTexts(a, b) : null;
}
