import { basename } from 'node:path';
import type { CatalogItem } from '../../contract/index.ts';
import type { InputSource } from './run-input.ts';

const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });
/** Longest title of an item that a name keeps. */
const maxTitleCharacters = 60;

const titleOf = ({ name, title, id }: CatalogItem) => [...(name ?? title ?? id)].slice(0, maxTitleCharacters).join('');

/** The acquisition day of an item. Empty if the item has no time that can be read. */
function dayOf({ datetime }: CatalogItem): string {
  const time = Date.parse(datetime ?? '');
  return Number.isNaN(time) ? '' : day.format(time);
}

/** Names an input of a run for people: `Olinda, Landsat 7 · 1 Jul 2002`, `12 items · 1 Jul 2002`, `scene.tif`. `items` are those of a platform's source. */
export function subjectOf(source: InputSource, items: readonly CatalogItem[]): string {
  if (source.type === 'synthetic') return 'synthetic scene';
  if (source.type === 'local') return basename(source.path);
  const [first] = items;
  if (!first) return '';
  const title = items.length === 1 ? titleOf(first) : `${items.length} items`;
  const days = new Set(items.map(dayOf));
  return [title, ...(days.size === 1 ? days : [])].filter((part) => part !== '').join(' · ');
}
