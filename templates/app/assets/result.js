// The result on the map, as soon as it is there: in the step's own colours, laid on its corners; before and after; the value under the pointer.
import { cornersOf, createMap, drawCanvas, drawImage } from './shared/map.js';

const find = (id) => document.getElementById(id);
let shown = false;

async function pictureOf(href) {
  const image = new Image();
  image.src = href;
  await image.decode();
  return image;
}

async function show() {
  const result = JSON.parse(find('result').textContent);
  if (shown || !result) return;
  shown = true;
  find('map-place').hidden = false;
  // The map ends before the poles.
  const corners = (result.corners ?? cornersOf(result.box)).map(([lon, lat]) => [
    lon,
    Math.max(-85, Math.min(85, lat)),
  ]);
  const bounds = [0, 1].map((end) =>
    [0, 1].map((axis) => (end === 0 ? Math.min : Math.max)(...corners.map((corner) => corner[axis]))),
  );
  const map = await createMap(find('map'), { bounds });
  if (!map) return;
  find('map-controls').hidden = false;
  const opacity = find('opacity');
  opacity.addEventListener('input', () => map.setPaintProperty('preview', 'raster-opacity', opacity.value / 100));
  map.fitBounds(bounds, { padding: 40, animate: false });
  // Of the platform's, which need not let its pixels be read.
  if (result.box) return void drawImage(map, result.href, corners);
  if (result.input) drawImage(map, result.input.href, cornersOf(result.input.box), 'input');
  const [picture, known] = await Promise.all([
    pictureOf(result.href),
    result.values
      ? fetch(result.values).then(
          (response) => response.json(),
          () => null,
        )
      : null,
  ]);
  const canvas = Object.assign(document.createElement('canvas'), {
    width: picture.naturalWidth,
    height: picture.naturalHeight,
  });
  const pen = canvas.getContext('2d');
  pen.drawImage(picture, 0, 0);
  const redraw = drawCanvas(map, canvas, corners, 'preview');

  const compare = find('compare');
  find('compare-place').hidden = !result.input;
  compare.addEventListener('input', () => {
    const from = Math.round((canvas.width * compare.value) / 100);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (from < canvas.width)
      pen.drawImage(picture, from, 0, canvas.width - from, canvas.height, from, 0, canvas.width - from, canvas.height);
    redraw();
  });

  const values = known?.values;
  if (!values) return;
  find('read-out').hidden = false;
  const names = new Map((known.classes ?? []).map(({ value, name }) => [value, name]));
  map.on('mousemove', ({ lngLat }) => {
    const [column, row] = placeIn(corners, [lngLat.lng, lngLat.lat]);
    const isInside = column >= 0 && column < 1 && row >= 0 && row < 1;
    const value = isInside
      ? values.rows[Math.floor(row * values.height) * values.width + Math.floor(column * values.width)]
      : undefined;
    find('read-out').textContent =
      value === undefined
        ? 'Hover or tap for values.'
        : value === null
          ? 'No data here.'
          : `${names.get(value) || result.name || 'Value'}: ${value}${result.unit ? ` ${result.unit}` : ''}${names.get(value) ? '' : ' (approximate, from the preview)'}`;
  });
}

/** Where a point lies in four corners, from the upper left, 0 to 1: as in a parallelogram, which they nearly are. */
function placeIn([origin, right, , below], [x, y]) {
  const [ax, ay, bx, by] = [right[0] - origin[0], right[1] - origin[1], below[0] - origin[0], below[1] - origin[1]];
  const [dx, dy] = [x - origin[0], y - origin[1]];
  const area = ax * by - ay * bx;
  return [(dx * by - dy * bx) / area, (ax * dy - ay * dx) / area];
}

// A notification when a decision came, or the run ended, if the user wants.
const stateOf = () => find('run').dataset.state;
const told = {
  REJECTED: 'It was rejected.',
  APPROVED: 'The platform has your approval; processing begins.',
  COMPLETED: 'Completed: the output is in the platform.',
  FAILED: 'The run failed.',
  EXPIRED: 'Nobody decided in time.',
};
let state = stateOf();
let wants = false;
function offer() {
  const button = find('notify');
  if (!button || !('Notification' in window) || Notification.permission === 'denied') return;
  button.hidden = wants;
}
document.addEventListener('click', async ({ target }) => {
  if (target.id !== 'notify') return;
  wants = (await Notification.requestPermission()) === 'granted';
  target.hidden = wants;
});
function notify(body) {
  try {
    new Notification(document.querySelector('h1').textContent, { body });
  } catch {
    // Some browsers let only a service worker notify; the title says it, too.
  }
}
document.addEventListener('live', () => {
  const now = stateOf();
  void show();
  offer();
  if (wants && now !== state && told[now]) notify(told[now]);
  state = now;
});
offer();
await show();
