import { stripVTControlCharacters } from 'node:util';

/** Text of a child without what a terminal or a page would obey: control characters, and marks that turn the direction of writing. */
export function plainText(text: string): string {
  return stripVTControlCharacters(text).replace(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu, '');
}
