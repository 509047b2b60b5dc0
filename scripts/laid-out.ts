import { readFileSync } from 'node:fs';
import { format, type FormatConfig } from 'oxfmt';

const settings = JSON.parse(readFileSync(new URL('../.oxfmtrc.json', import.meta.url), 'utf8')) as FormatConfig;

/** Text of a file of the kit, as `npx oxfmt` lays it out. */
export async function laidOut(path: string, text: string): Promise<string> {
  return (await format(path, text, { ...settings, proseWrap: 'never' })).code;
}
