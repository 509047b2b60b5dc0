import { readFileSync } from 'node:fs';
import { format, type FormatConfig } from 'oxfmt';

const settings = JSON.parse(readFileSync(new URL('../.oxfmtrc.json', import.meta.url), 'utf8')) as FormatConfig;

/** Formats the text of one of the kit's files like `npx oxfmt`. */
export async function laidOut(path: string, text: string): Promise<string> {
  return (await format(path, text, { ...settings, proseWrap: 'never' })).code;
}
