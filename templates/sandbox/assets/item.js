// @ts-check
// The item's preview, laid on its place.
import { byId, dataOf, first } from './shared/dom.js';
import { boundsOf, cornersOf, createMap, drawFootprints, drawImage } from './shared/map.js';

/** @type {{ box: import('./shared/map.js').Box, previewHref: string, footprint: import('geojson').Polygon }} */
const item = dataOf('item');
const map = await createMap(byId('map', HTMLElement), { bounds: boundsOf(item.box) });
if (map) {
  map.view.fitBounds(boundsOf(item.box), { padding: 40, animate: false });
  drawImage(map, item.previewHref, cornersOf(item.box));
  drawFootprints(map, [{ type: 'Feature', geometry: item.footprint, properties: {} }]);
  map.view.setPaintProperty('footprints', 'fill-opacity', 0);
  const controls = first('#map-controls', HTMLElement);
  if (controls) controls.hidden = false;
  const opacity = first('#opacity', HTMLInputElement);
  opacity?.addEventListener('input', () =>
    map.view.setPaintProperty('preview', 'raster-opacity', Number(opacity.value) / 100),
  );
}
