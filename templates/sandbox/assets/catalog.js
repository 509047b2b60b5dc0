// The found items on the map; the box that is seen as a search.
import { boundsOf, createMap, dataOf, drawFootprints } from './shared/map.js';

const form = document.querySelector('#search');
const items = dataOf('items');
const asked = form.elements.bbox.value.split(',').map(Number);
const map = await createMap(document.querySelector('#map'), asked.length === 4 && asked.every(Number.isFinite) ? { bounds: boundsOf(asked) } : {});
if (map) {
  if (asked.length !== 4 && location.search && items.length > 0) {
    const boxes = items.map(({ bbox }) => boundsOf(bbox));
    const edge = (corner, axis, pick) => pick(...boxes.map((box) => box[corner][axis]));
    map.fitBounds([[edge(0, 0, Math.min), edge(0, 1, Math.min)], [edge(1, 0, Math.max), edge(1, 1, Math.max)]], { padding: 60, maxZoom: 9, animate: false });
  }
  drawFootprints(map, items, ({ href }) => location.assign(href));
  document.querySelector('#search-here').addEventListener('click', () => {
    const { _sw: sw, _ne: ne } = map.getBounds();
    const wrap = (lng) => ((((lng + 180) % 360) + 360) % 360) - 180;
    const isWhole = ne.lng - sw.lng >= 360;
    form.elements.bbox.value = [isWhole ? -180 : wrap(sw.lng), Math.max(-90, sw.lat), isWhole ? 180 : wrap(ne.lng), Math.min(90, ne.lat)].map((n) => n.toFixed(4)).join(',');
    form.requestSubmit();
  });
} else {
  document.querySelector('#search-here').hidden = true;
}
