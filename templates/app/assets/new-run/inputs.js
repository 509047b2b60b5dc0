// @ts-check
// The inputs of the step, and the user's choice for each: items of the catalog, or another source.
import { dataOf } from '../shared/dom.js';
import { allIn, firstIn } from './form.js';

/** @import { FoundItem } from '../../../../src/app/catalog/found-item.ts' */
/** @import { InputSource, ItemReference, RunInput } from '../../../../src/app/processing/run-input.ts' */

/**
 * An item of the catalog. An item of an earlier run has ids only.
 * @typedef {ItemReference & Partial<Omit<FoundItem, keyof ItemReference>>} Item
 */
/**
 * An input of the step. `other` is a source that is no item, as JSON.
 * @typedef {object} Slot
 * @property {string} kind
 * @property {boolean} isOptional
 * @property {Map<string, Item>} items
 * @property {string | null} other
 */

/** @param {ItemReference} item */
export const keyOf = ({ collectionId, itemId }) => `${collectionId}/${itemId}`;

/**
 * By name. Choices stay over searches.
 * @type {Map<string, Slot>}
 */
export const slots = new Map(
  allIn('[data-slot]', HTMLInputElement).map(({ value, dataset }) => [
    value,
    {
      kind: dataset['kind'] ?? 'raster',
      isOptional: dataset['optional'] !== undefined,
      items: new Map(),
      other: null,
    },
  ]),
);
// An app's own page may have none.
if (slots.size === 0) slots.set('', { kind: 'raster', isOptional: false, items: new Map(), other: null });

// Keeps a choice that the user made before this script ran.
let name = firstIn('[data-slot]:checked', HTMLInputElement)?.value ?? [...slots.keys()][0] ?? '';
current().other = firstIn('[data-source]:checked', HTMLInputElement)?.value ?? null;

/**
 * Returns the input that the user is choosing.
 * @returns {Slot}
 */
export function current() {
  const slot = slots.get(name);
  if (!slot) throw new Error(`the step has no input ${name}`);
  return slot;
}
/** Returns the name of that input; empty if the step has one input without a name. */
export const currentName = () => name;

/** @param {string} wanted */
export function turnTo(wanted) {
  if (slots.has(wanted)) name = wanted;
}

/**
 * Items that an earlier run had have ids only: completes them.
 * @param {FoundItem[]} found
 */
export function complete(found) {
  for (const { items } of slots.values())
    for (const item of found.flatMap(asItem)) if (items.has(keyOf(item))) items.set(keyOf(item), item);
}

/**
 * A found item of a collection, as one element or none.
 * @param {FoundItem} item
 * @returns {Item[]}
 */
export const asItem = ({ collectionId, ...item }) => (collectionId === null ? [] : [{ ...item, collectionId }]);

/**
 * The choice of an input in words.
 * @param {Slot} slot
 */
export function inWords({ items, other }) {
  if (items.size > 0) return titlesOf(items).join(', ');
  if (other === null) return 'nothing is chosen';
  /** @type {InputSource} */
  const source = JSON.parse(other);
  return source.type === 'local' ? source.path : 'a synthetic one';
}
/** @param {Map<string, Item>} items */
export const titlesOf = (items) => [...items.values()].map(({ title, itemId }) => title ?? itemId);

/**
 * @param {Slot} slot
 * @returns {InputSource | null}
 */
function sourceOf({ items, other }) {
  if (items.size === 0) return other === null ? null : JSON.parse(other);
  return {
    type: 'platform',
    items: [...items.values()].map(({ collectionId, itemId }) => ({ collectionId, itemId })),
  };
}

/**
 * Returns the input of the run; null while an input that the step needs is not chosen.
 * @returns {RunInput | null}
 */
export function inputOf() {
  if (slots.size === 1) return sourceOf(current());
  /** @type {Record<string, InputSource>} */
  const inputs = {};
  for (const [one, slot] of slots) {
    const source = sourceOf(slot);
    if (source) inputs[one] = source;
    else if (!slot.isOptional) return null;
  }
  return { type: 'named', inputs };
}

/**
 * Chooses the input of an earlier run, which the server has put into the page, or else the given one.
 * @param {RunInput | null} otherwise
 */
export function chooseEarlier(otherwise) {
  /** @type {RunInput | null} */
  const earlier = dataOf('earlier') ?? otherwise;
  if (!earlier) return;
  const sources = earlier.type === 'named' ? earlier.inputs : Object.fromEntries([...slots.keys()].map((one) => [one, earlier])); // oxfmt-ignore
  for (const [one, source] of Object.entries(sources)) {
    const slot = slots.get(one);
    if (source.type === 'platform') for (const item of source.items) slot?.items.set(keyOf(item), item);
    else if (slot) slot.other = JSON.stringify(source);
  }
}
