import type { InputSource, RunInput } from '../processing/run-input.ts';

const shortItems = 2;

function sourceInWords(source: InputSource, isShort: boolean): string {
  if (source.type === 'synthetic') return 'synthetic';
  if (source.type === 'local') return source.path;
  const { items } = source;
  if (!isShort) return items.map(({ collectionId, itemId }) => `${collectionId}/${itemId}`).join(', ');
  const ids = items.slice(0, shortItems).map(({ itemId }) => itemId);
  return `${ids.join(', ')}${items.length > shortItems ? ` and ${items.length - shortItems} more` : ''}`;
}

/** Describes a run's input in words. `isShort` keeps the text short enough for a table row. */
export function inputInWords(input: RunInput, { isShort = false } = {}): string {
  if (input.type !== 'named') return sourceInWords(input, isShort);
  return Object.entries(input.inputs)
    .map(([name, source]) => `${name}: ${sourceInWords(source, isShort)}`)
    .join('; ');
}
