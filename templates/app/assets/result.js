// The result on the map, as soon as it is there: in the step's own colours, laid on its corners.
import { cornersOf, createMap, drawImage } from './shared/map.js';

let shown = false;
async function show() {
  const result = JSON.parse(document.querySelector('#result').textContent);
  if (shown || !result) return;
  shown = true;
  document.querySelector('#map-place').hidden = false;
  // The map ends before the poles.
  const corners = (result.corners ?? cornersOf(result.box)).map(([lon, lat]) => [lon, Math.max(-85, Math.min(85, lat))]);
  const bounds = [0, 1].map((end) => [0, 1].map((axis) => (end === 0 ? Math.min : Math.max)(...corners.map((corner) => corner[axis]))));
  const map = await createMap(document.querySelector('#map'), { bounds });
  if (!map) return;
  map.fitBounds(bounds, { padding: 40, animate: false });
  drawImage(map, result.href, corners);
  const opacity = document.querySelector('#opacity');
  opacity.addEventListener('input', () => map.setPaintProperty('preview', 'raster-opacity', opacity.value / 100));
}

document.addEventListener('live', show);
await show();
