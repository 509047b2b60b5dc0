/** Property values in a form that the database can compare: numbers unchanged, texts with the prefix `t`, others as JSON with the prefix `u`. SQLite sorts numbers first, then texts by code points, then others. */
import { parseInstant } from '../../contract/index.ts';

/** Null if the item has no value. */
export type SearchValue = number | string | null;

/** SQL of a row of `json_each` as a number of JavaScript: integers over 2^53 become doubles. */
export const valueOfJson =
  "iif(typeof(value) = 'integer' and value not between -9007199254740992 and 9007199254740992, cast(value as real), value)";

/** SQL of a JSONB object with the search values of all properties in `json`. Null for JSON with over 1,000 levels, which SQLite cannot read. */
export const searchValuesOf = (json: string): string =>
  `iif(json_valid(${json}), (select jsonb_group_object(key, case type when 'integer' then ${valueOfJson} when 'real' then value when 'text' then 't' || value
    when 'true' then 'utrue' when 'false' then 'ufalse' else 'u' || value end) from json_each(${json}) where type <> 'null'), null)`;

export function searchValue(value: string | number | boolean | null): SearchValue {
  return typeof value === 'string' ? `t${value}` : typeof value === 'boolean' ? `u${value}` : value;
}

export const isText = (value: SearchValue): value is string => typeof value === 'string' && value.startsWith('t');

/** Epoch milliseconds of a text with an RFC 3339 timestamp. Null for other values. */
export function instantOf(value: SearchValue): number | null {
  return isText(value) ? parseInstant(value.slice(1)) : null;
}

/** Compares by code points, like SQLite. The order of UTF-16 units differs from U+D800 on. */
function compareTexts(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let i = 0;
  while (i < most && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i === most ? a.length - b.length : placeOf(a.charCodeAt(i)) - placeOf(b.charCodeAt(i));
}

/** Moves surrogates to the end, because they encode the highest code points. */
const placeOf = (unit: number) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

const isBoolean = (value: SearchValue) => value === 'utrue' || value === 'ufalse';

/** Negative if `a` comes first. Null if the values cannot be compared. Timestamps compare by time. */
export function orderOf(a: SearchValue, b: SearchValue): number | null {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [x, y] = [instantOf(a), instantOf(b)];
  if (x !== null && y !== null) return x - y;
  const areAlike = (isText(a) && isText(b)) || (isBoolean(a) && isBoolean(b));
  return areAlike ? compareTexts(a, b) : null;
}
