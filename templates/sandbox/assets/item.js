// The item's preview, laid on its place.
import { boundsOf, cornersOf, createMap, dataOf, drawFootprints, drawImage } from './shared/map.js';

const item = dataOf('item');
const map = await createMap(document.querySelector('#map'), { bounds: boundsOf(item.box) });
if (map) {
  map.fitBounds(boundsOf(item.box), { padding: 40, animate: false });
  drawImage(map, item.previewHref, cornersOf(item.box));
  drawFootprints(map, [{ type: 'Feature', geometry: item.footprint, properties: {} }]);
  map.setPaintProperty('footprints', 'fill-opacity', 0);
  const opacity = document.querySelector('#opacity');
  opacity?.addEventListener('input', () => map.setPaintProperty('preview', 'raster-opacity', opacity.value / 100));
}
