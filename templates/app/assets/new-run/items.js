// @ts-check
// Items of the platform's catalog: search, list, and footprints on the map.
import { all, byId, first, messageOf } from '../shared/dom.js';
import {
  boundsAround,
  cornersOf,
  drawBox,
  drawFootprints,
  drawImage,
  markFootprint,
  removePicture,
  seenBox,
  watchFootprints,
} from '../shared/map.js';
import { look } from './api.js';
import { choice, smaller } from './choice.js';
import { formData } from './form.js';
import { asItem, complete, current, currentName, keyOf } from './inputs.js';

/** @import { FoundItem } from '../../../../src/app/catalog/found-item.ts' */
/** @import { Box, PageMap } from '../shared/map.js' */
/** @import { Feature, MultiPolygon, Polygon } from 'geojson' */
/** @import { LngLat } from 'maplibre-gl' */
/** @import { Item } from './inputs.js' */

/** @typedef {Item & { incompatibility?: string | null | undefined }} Shown an item of the list */

const shownItems = 100;
const list = byId('items', HTMLElement);
const status = byId('found', HTMLElement);
const field = (/** @type {string} */ id) => byId(id, HTMLInputElement);
const collectionField = byId('collection', HTMLSelectElement);

/** @type {Shown[]} */
let found = [];
/** Number of items that the list leaves out because they do not fit the step. */
let hidden = 0;
/** @type {(item: Item, isChosen: boolean) => void} */
let onChosen = () => {};

/**
 * The box of the search; null for everywhere.
 * @type {Box | null}
 */
let area = null;
/** @type {(box: Box | null) => void} */
let showArea = () => {};
/** @param {Box | null} box */
function setArea(box) {
  area = box;
  field('box').value = box ? box.map((n) => Number(n.toFixed(4))).join(', ') : '';
  showArea(box);
  void search();
}

/**
 * Null until the map has loaded, or if it cannot load. The form works without it.
 * @type {PageMap | null}
 */
let map = null;
/** @param {PageMap} made */
export function useMap(made) {
  map = made;
  const [draw, here] = [byId('draw', HTMLButtonElement), byId('search', HTMLButtonElement)];
  draw.hidden = here.hidden = false;
  const actions = first('#map-actions', HTMLElement);
  if (actions) actions.hidden = false;
  showArea = drawBox(made, draw, setArea);
  showArea(area);
  showFound();
  watchFootprints(made, (key) => {
    markFootprint(made, key);
    for (const row of all('.item-choice', HTMLElement, list))
      row.classList.toggle('hovered', row.dataset['key'] === key);
  });
}

/** Checks the boxes of the chosen items, and marks their footprints. */
export function showChosen() {
  const { items } = current();
  for (const box of all('input', HTMLInputElement, list)) box.checked = items.has(box.value);
  drawItems();
  drawScene();
}

/** Address of the picture that the map shows. */
let drawn = '';
/** Draws the chosen item in its place and at its zoom. Several items are footprints alone. */
function drawScene() {
  if (!map) return;
  const [only, another] = current().items.values();
  const { previewHref, bbox } = another ? {} : (only ?? {});
  const href = previewHref && bbox?.length === 4 ? previewHref : '';
  if (href === drawn) return;
  drawn = href;
  if (href === '' || !bbox) return removePicture(map, 'scene');
  drawImage(map, href, cornersOf(bbox), 'scene');
  map.view.fitBounds(boundsAround([bbox]), { padding: 60, maxZoom: 14, animate: false });
}

function drawItems() {
  if (!map) return;
  const { items } = current();
  /** @type {Feature<Polygon | MultiPolygon, { key: string, chosen: boolean, drawn: boolean }>[]} */
  const features = found.flatMap((item) => {
    const { geometry, incompatibility } = item;
    if (!geometry || incompatibility) return [];
    const footprint = /** @type {Polygon | MultiPolygon} */ (geometry);
    const key = keyOf(item);
    return [
      {
        type: 'Feature',
        geometry: footprint,
        properties: {
          key,
          chosen: items.has(key),
          drawn: items.size === 1 && items.has(key) && Boolean(item.previewHref),
        },
      },
    ];
  });
  drawFootprints(map, features, (hit, place) => {
    const under = hit.flatMap(({ key }) => found.find((item) => keyOf(item) === key) ?? []);
    const [only, another] = under;
    if (only && !another && !only.previewHref) onChosen(only, !current().items.has(keyOf(only)));
    else offerOnMap(under, place);
  });
}

/**
 * Facts about an item in one line.
 * @param {Item} item
 */
function factsOf({ datetime, sourceType, cloudCover, bands }) {
  return [
    datetime?.slice(0, 10),
    sourceType?.toLowerCase().replaceAll('_', ' '),
    typeof cloudCover === 'number' ? `${Math.round(cloudCover)} % clouds` : null,
    bands && bands.length > 8 ? `${bands.length} bands` : bands && bands.length > 1 ? bands.join(' ') : null,
  ]
    .filter(Boolean)
    .join(', ');
}

/**
 * A list of the footprints that lie over each other; one alone with its picture.
 * @param {Item[]} items
 * @param {LngLat} lngLat
 */
function offerOnMap(items, lngLat) {
  const place = document.createElement('div');
  const [only] = items;
  if (items.length === 1 && only?.previewHref)
    place.append(Object.assign(document.createElement('img'), { src: only.previewHref, alt: '' }));
  if (items.length > 1) place.append(`${items.length} items lie here:`);
  for (const item of items) {
    const checked = current().items.has(keyOf(item));
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked });
    box.addEventListener('change', () => onChosen(item, box.checked));
    place.append(choice(box, [item.title ?? item.itemId, smaller(factsOf(item))]));
  }
  map?.openPopup(lngLat, place);
}

/** @type {Promise<{ id: string, title?: string | null }[]> | null} */
let collections = null;
/** Collections of the platform. Fetched once; the next search repeats a failed fetch. */
function allCollections() {
  collections ??= look('collections').then(
    (/** @type {{ collections: { id: string, title?: string | null }[] }} */ answer) => {
      for (const { id, title } of answer.collections) collectionField.append(new Option(title ?? id, id));
      return answer.collections;
    },
    (error) => {
      collections = null;
      throw error;
    },
  );
  return collections;
}

const isChosen = (/** @type {Shown} */ item) => current().items.has(keyOf(item));

/** Shows the collection of the items that the page came with, so that the list and the map begin with them. */
export function beginWithChosen() {
  const [first] = current().items.values();
  if (!first) return;
  const { collectionId } = first;
  void allCollections().then(
    (known) => {
      if (known.some(({ id }) => id === collectionId)) collectionField.value = collectionId;
    },
    () => {},
  );
}

/** Number of searches. The last one counts if searches overtake each other. */
let searches = 0;

export async function search(offset = 0) {
  const mine = ++searches;
  const [from, to, clouds] = [field('from').value, field('to').value, field('clouds').value];
  try {
    const known = await allCollections();
    if (mine !== searches) return;
    const asked = collectionField.value ? [collectionField.value] : known.map(({ id }) => id);
    if (asked.length === 0) throw new Error('the platform has no collection to choose from');
    const slot = currentName();
    /** @type {{ items: FoundItem[], numberMatched: number | null }} */
    const { items, numberMatched } = await look('items/search', {
      stepId: formData['step'],
      ...(slot ? { input: slot } : {}),
      collections: asked,
      limit: shownItems,
      offset,
      ...(area ? { bbox: area } : {}),
      ...(from || to ? { datetime: `${from || '1900-01-01'}T00:00:00Z/${to || '2199-12-31'}T23:59:59Z` } : {}),
    });
    if (mine !== searches) return;
    const clear = items.filter(
      ({ cloudCover }) => clouds === '' || cloudCover === null || cloudCover <= Number(clouds),
    );
    const fitting = clear.filter(({ incompatibility }) => !incompatibility);
    const isAll = field('all-sizes').checked;
    const added = isAll ? clear : fitting;
    complete(added);
    const shown = added.flatMap(asItem);
    // A new list begins with what is chosen already.
    add(offset === 0 ? [...shown.filter(isChosen), ...shown.filter((item) => !isChosen(item))] : shown, offset === 0);
    hidden = (offset === 0 ? 0 : hidden) + (isAll ? 0 : clear.length - fitting.length);
    const seen = offset + items.length;
    const more = byId('more', HTMLButtonElement);
    more.hidden = !(numberMatched === null ? items.length === shownItems : seen < numberMatched);
    more.onclick = () => search(seen);
    const count = `${found.length} ${isAll ? '' : 'compatible '}${found.length === 1 ? 'item' : 'items'}`;
    status.textContent = `${count}, newest first${hidden > 0 ? `; ${hidden} incompatible hidden` : ''}; searched ${seen} of ${numberMatched ?? seen}`;
    if (offset === 0) showFound();
    document.dispatchEvent(new Event('found'));
  } catch (error) {
    if (mine === searches) offerRepeat(error, offset);
  }
}

/**
 * Adds items to the list, or begins a new list.
 * @param {Shown[]} added
 * @param {boolean} isNew
 */
function add(added, isNew) {
  found = isNew ? added : [...found, ...added];
  if (isNew) list.replaceChildren();
  list.append(
    ...added.map((item) => {
      const box = Object.assign(document.createElement('input'), {
        type: 'checkbox',
        name: 'item',
        value: keyOf(item),
        checked: current().items.has(keyOf(item)),
        disabled: Boolean(item.incompatibility),
      });
      box.addEventListener('change', () => onChosen(item, box.checked));
      const facts = item.incompatibility ? `${factsOf(item)}; it ${item.incompatibility}` : factsOf(item);
      const row = choice(box, [item.title ?? item.itemId, smaller(facts)], item.previewHref);
      row.dataset['key'] = keyOf(item);
      row.addEventListener('pointerenter', () => map && markFootprint(map, keyOf(item)));
      row.addEventListener('pointerleave', () => map && markFootprint(map, null));
      return row;
    }),
  );
  showMatching();
}

/** Hides the rows of the list that lack a word of the search field. */
function showMatching() {
  const words = (first('#words', HTMLInputElement)?.value ?? '').toLowerCase().split(/\s+/);
  for (const row of all('.item-choice', HTMLElement, list))
    row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
}

/**
 * Shows why a search failed.
 * @param {unknown} error
 * @param {number} offset
 */
function offerRepeat(error, offset) {
  const again = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Search again' });
  again.className = 'plain tiny';
  again.addEventListener('click', () => {
    status.textContent = "Searching the platform's catalog";
    void search(offset);
  });
  status.replaceChildren(`The catalog search failed: ${messageOf(error)}. `, again);
}

/** Moves the map to the chosen items, or else to the found ones, unless the user has chosen an area. */
function showFound() {
  const chosen = found.filter(isChosen);
  const boxes = (chosen.length > 0 ? chosen : found).flatMap(({ bbox }) => (bbox?.length === 4 ? [bbox] : []));
  if (map && !area && boxes.length > 0)
    map.view.fitBounds(boundsAround(boxes), { padding: 60, maxZoom: chosen.length === 1 ? 14 : 8, animate: false });
  drawItems();
  drawScene();
}

/**
 * Searches when a field of the search changes. `chosen` hears which item the user has checked or not.
 * @param {typeof onChosen} chosen
 */
export function listen(chosen) {
  onChosen = chosen;
  first('#words', HTMLInputElement)?.addEventListener('input', showMatching);
  byId('search', HTMLButtonElement).addEventListener('click', () => map && setArea(seenBox(map)));
  const box = field('box');
  box.addEventListener('change', () => {
    const numbers = box.value.split(',').map(Number);
    const isBox = box.value.trim() !== '' && numbers.length === 4 && numbers.every(Number.isFinite);
    setArea(isBox ? numbers : null);
  });
  for (const id of ['collection', 'from', 'to', 'clouds', 'all-sizes'])
    byId(id, HTMLElement).addEventListener('change', () => search());
}
