// The result on the map, as soon as the platform has a place for it.
import { boundsOf, createMap, drawImage } from './shared/map.js';

let shown = false;
async function show() {
  const result = JSON.parse(document.querySelector('#result').textContent);
  if (shown || !result) return;
  shown = true;
  document.querySelector('#map-place').hidden = false;
  const map = await createMap(document.querySelector('#map'), { bounds: boundsOf(result.box) });
  if (!map) return;
  map.fitBounds(boundsOf(result.box), { padding: 40, animate: false });
  drawImage(map, result.previewHref, result.box);
}
document.addEventListener('live', show);
await show();
