// @ts-check
// Shows the found items on the map as soon as the user touches it, and searches the visible box or a drawn one.
import { all, around, byId, dataOf } from './shared/dom.js';
import {
  boundsAround,
  boundsOf,
  createMap,
  drawBox,
  drawFootprints,
  markFootprint,
  seenBox,
  watchFootprints,
  whenWanted,
} from './shared/map.js';

/** @typedef {{ key: string, title: string, href: string, day: string, thumbHref: string }} Found */

const form = byId('search', HTMLFormElement);
const field = /** @type {HTMLInputElement} */ (form.elements.namedItem('bbox'));
/** @type {(import('geojson').Feature<import('geojson').Polygon, Found> & { bbox: [number, number, number, number] })[]} */
const items = dataOf('items');
const place = byId('map', HTMLElement);
const asked = field.value.split(',').map(Number);
const isBox = asked.length === 4 && asked.every(Number.isFinite);

const rows = () => all('.rows > li', HTMLElement);
const words = byId('words', HTMLInputElement);
words.hidden = false;
words.addEventListener('input', () => {
  const wanted = words.value.toLowerCase().split(/\s+/);
  for (const row of rows()) row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word));
});

await whenWanted(place);
const map = await createMap(place, isBox ? { bounds: boundsOf(asked) } : {});
if (map) {
  if (!isBox && location.search && items.length > 0)
    map.view.fitBounds(boundsAround(items.map(({ bbox }) => bbox)), { padding: 60, maxZoom: 9, animate: false });
  drawFootprints(map, items, (found, lngLat) => map.openPopup(lngLat, about(found)));
  /** @param {readonly number[]} box */
  const search = (box) => {
    field.value = box.map((n) => n.toFixed(4)).join(',');
    form.requestSubmit();
  };
  const [here, draw] = [byId('search-here', HTMLButtonElement), byId('draw', HTMLButtonElement)];
  here.hidden = draw.hidden = byId('map-actions', HTMLElement).hidden = false;
  here.addEventListener('click', () => search(seenBox(map)));
  const show = drawBox(map, draw, search);
  if (isBox) show(asked);
  watchFootprints(map, (key) => {
    markFootprint(map, key);
    for (const row of rows()) row.classList.toggle('hovered', row.dataset['key'] === key);
  });
  for (const type of ['pointerover', 'focusin'])
    document.addEventListener(type, (event) => {
      const row = around(event, '.rows > li', HTMLElement);
      if (row) markFootprint(map, row.dataset['key'] ?? null);
    });
}

/**
 * One item with its picture; several as a list.
 * @param {Found[]} found
 */
function about(found) {
  const part = document.createElement('div');
  const [only, another] = found;
  if (only && !another) part.append(Object.assign(document.createElement('img'), { src: only.thumbHref, alt: '' }));
  const list = part.appendChild(document.createElement('ul'));
  for (const { title, href, day } of found.slice(0, 30)) {
    const line = list.appendChild(document.createElement('li'));
    line.append(Object.assign(document.createElement('a'), { href, textContent: title }), ` ${day}`);
  }
  return part;
}
