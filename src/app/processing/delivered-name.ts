import { basename, extname } from 'node:path';
import { limits } from '../../contract/index.ts';
import { sourcesOf } from './facts-of-inputs.ts';
import type { RunInput } from './run-input.ts';

/** Longest part of a name that comes from an input. */
const maxSourceCharacters = 60;

/**
 * Name of an output on the platform: the step's own name for it, the source, and the day of the acquisition, as in
 * `ndvi_olinda-landsat7_2002-07-01.tif`. `number` tells apart the results of one user's day; 1 is not written.
 */
export function deliveredName(
  fileName: string,
  { input, acquisitionDate }: { readonly input: RunInput; readonly acquisitionDate?: string | undefined },
  number = 1,
): string {
  const ending = extname(fileName);
  const day = acquisitionDate?.slice(0, 10) ?? '';
  const parts = [basename(fileName, ending), nameOfSource(input), day, number > 1 ? String(number) : ''];
  const [stem = '', ...others] = parts.filter((part) => part !== '');
  const rest = others.map((part) => `_${part}`).join('') + ending;
  return `${cutTo(limits.fileNameBytes - Buffer.byteLength(rest), stem)}${rest}`;
}

/** The beginning of a text that has at most so many bytes, in whole characters. */
function cutTo(bytes: number, text: string): string {
  let [cut, size] = ['', 0];
  for (const character of text) {
    size += Buffer.byteLength(character);
    if (size > bytes) break;
    cut += character;
  }
  return cut;
}

/** Names what a run takes: an item, several items of a collection, a file. Letters, digits, dots and hyphens only. */
export function nameOfSource(input: RunInput): string {
  const names = sourcesOf(input).map((source) => {
    if (source.type === 'synthetic') return 'synthetic';
    if (source.type === 'local') return basename(source.path, extname(source.path));
    const [first] = source.items;
    if (source.items.length === 1) return first?.itemId ?? '';
    const collections = new Set(source.items.map(({ collectionId }) => collectionId));
    return `${collections.size === 1 ? first?.collectionId : 'items'}-${source.items.length}`;
  });
  return [...new Set(names)]
    .join('-')
    .replace(/[^A-Za-z0-9.-]+/g, '-')
    .slice(0, maxSourceCharacters)
    .replace(/^[.-]+|[.-]+$/g, '');
}
