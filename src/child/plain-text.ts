/**
 * Sequences that a terminal obeys (ECMA-48): those with a text, such as titles and links, and those with parameters. Each part has
 * a bound, so that no text takes longer than its length allows.
 */
const sequences =
  // oxlint-disable-next-line no-control-regex -- they are what it looks for
  /\u001b\][^\u0007\u001b]{0,2000}(?:\u0007|\u001b\\)|(?:\u001b\[|\u009b)[0-9:;<=>?]{0,40}[ -/]{0,4}[@-~]|\u001b[ -/]{0,4}[0-Z\\^-~]/g;

/** Text of a child without what a terminal or a page would obey: control characters, and marks that turn the direction of writing. */
export function plainText(text: string): string {
  return text.replace(sequences, '').replace(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu, '');
}
