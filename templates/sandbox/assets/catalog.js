// The found items on the map, once somebody means it; the box that is seen, or one that is drawn, as a search.
import {
  boundsAround,
  boundsOf,
  createMap,
  dataOf,
  drawBox,
  drawFootprints,
  seenBox,
  whenWanted,
} from './shared/map.js';

const form = document.querySelector('#search');
const items = dataOf('items');
const place = document.querySelector('#map');
const asked = form.elements.bbox.value.split(',').map(Number);
const isBox = asked.length === 4 && asked.every(Number.isFinite);

await whenWanted(place);
const map = await createMap(place, isBox ? { bounds: boundsOf(asked) } : {});
if (map) {
  if (!isBox && location.search && items.length > 0)
    map.fitBounds(boundsAround(items.map(({ bbox }) => bbox)), { padding: 60, maxZoom: 9, animate: false });
  drawFootprints(map, items, (found, lngLat) => map.popupOf(lngLat, about(found)));
  const search = (box) => {
    form.elements.bbox.value = box.map((n) => n.toFixed(4)).join(',');
    form.requestSubmit();
  };
  const [here, draw] = ['#search-here', '#draw'].map((id) => document.querySelector(id));
  here.hidden = draw.hidden = false;
  here.addEventListener('click', () => search(seenBox(map)));
  const show = drawBox(map, draw, search);
  if (isBox) show(asked);
}

/** One with its picture; several as a list. */
function about(found) {
  const part = document.createElement('div');
  if (found.length === 1)
    part.append(Object.assign(document.createElement('img'), { src: found[0].thumbHref, alt: '' }));
  const list = part.appendChild(document.createElement('ul'));
  for (const { title, href, day } of found.slice(0, 30)) {
    const line = list.appendChild(document.createElement('li'));
    line.append(Object.assign(document.createElement('a'), { href, textContent: title }), ` ${day}`);
  }
  return part;
}
