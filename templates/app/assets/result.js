// @ts-check
// The result of a run on the map, in the step's colours: before and after, and the value under the pointer.
import { around, byId, dataOf, first } from './shared/dom.js';
import { boundsOf, boundsOfPlaces, cornersOf, createMap, drawCanvas, drawImage, onMap } from './shared/map.js';

/** @import { Box, Corners, PageMap } from './shared/map.js' */
/** @import { Place } from './shared/map-base.js' */

/**
 * The data block of the page, by `run.eta`. `box` or `corners` place the picture.
 * @typedef {object} Result
 * @property {string} href
 * @property {Corners} [corners]
 * @property {Box} [box] of a picture that the platform drew, whose pixels a page may not read
 * @property {{ href: string, box: Box } | null} [input]
 * @property {string | null} [values] address of the values
 * @property {string | null} [name]
 * @property {string | null} [unit]
 */
/** @typedef {{ width: number, height: number, rows: (number | null)[] }} Values */
/** @typedef {{ values: Values | null, classes: { value: number, name: string }[] | null }} KnownValues */

let shown = false;
/** @type {{ href: string, box: Box } | null} */
const scene = first('#scene', HTMLScriptElement) ? dataOf('scene') : null;

/**
 * The map of the page, made once, with the input of the run in its place.
 * @type {Promise<PageMap | null> | null}
 */
let shownMap = null;
function pageMap() {
  return (shownMap ??= createMap(byId('map', HTMLElement), scene ? { bounds: boundsOf(scene.box) } : {}).then((map) => {
    if (map && scene) {
      map.view.fitBounds(boundsOf(scene.box), { padding: 40, animate: false });
      drawImage(map, scene.href, cornersOf(scene.box), 'input');
    }
    return map;
  }));
}

/** @param {string} href */
async function pictureOf(href) {
  const image = new Image();
  image.src = href;
  await image.decode();
  return image;
}

/**
 * @param {string | null | undefined} address
 * @returns {Promise<KnownValues | null>}
 */
async function valuesAt(address) {
  if (!address) return null;
  return fetch(address).then(
    (response) => response.json(),
    () => null,
  );
}

/**
 * Shows the result as a picture in a browser without WebGL. A page that was loaded after the end of the run has one on its map.
 * @param {string} href
 */
function showPicture(href) {
  const stills = [...document.querySelectorAll('#map .map-picture image')];
  if (stills.some((still) => still.getAttribute('href') === href)) return;
  byId('map', HTMLElement).append(
    Object.assign(document.createElement('img'), { className: 'result-picture', src: href, alt: 'The result' }),
  );
}

async function show() {
  /** @type {Result | null} */
  const result = dataOf('result');
  if (shown || !result) return;
  shown = true;
  const [upperLeft, upperRight, lowerRight, lowerLeft] = result.corners ?? cornersOf(result.box ?? []);
  /** @type {Corners} */
  const corners = [onMap(upperLeft), onMap(upperRight), onMap(lowerRight), onMap(lowerLeft)];
  const bounds = boundsOfPlaces(corners);
  const place = first('#map-place', HTMLElement);
  if (place) place.hidden = false;
  const map = await pageMap();
  if (!map) return showPicture(result.href);
  byId('map-controls', HTMLElement).hidden = false;
  const opacity = byId('opacity', HTMLInputElement);
  opacity.addEventListener('input', () =>
    map.view.setPaintProperty('preview', 'raster-opacity', Number(opacity.value) / 100),
  );
  map.view.fitBounds(bounds, { padding: 40, animate: false });
  if (result.box) return drawImage(map, result.href, corners);
  const [picture, known] = await Promise.all([pictureOf(result.href), valuesAt(result.values)]);
  // The platform may have been away when the page was loaded.
  const late = scene ? null : result.input;
  if (late) drawImage(map, late.href, cornersOf(late.box), 'input');
  offerComparison(map, picture, corners, Boolean(scene ?? late));
  if (known?.values) offerValues(map, corners, result, known.values, known.classes ?? []);
}

/**
 * Lets the user swipe between the input and the result: the handle lies on the map, and the result begins at its place.
 * @param {PageMap} map
 * @param {HTMLImageElement} picture
 * @param {Corners} corners
 * @param {boolean} hasInput
 */
function offerComparison(map, picture, corners, hasInput) {
  const canvas = Object.assign(document.createElement('canvas'), {
    width: picture.naturalWidth,
    height: picture.naturalHeight,
  });
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.drawImage(picture, 0, 0);
  const redraw = drawCanvas(map, canvas, corners, 'preview');
  const compare = byId('compare', HTMLInputElement);
  compare.hidden = !hasInput;
  const label = first('#compare-place', HTMLElement);
  if (label) label.hidden = !hasInput;
  let shownFrom = 0;
  function cut() {
    const [left, right] = [corners[0], corners[1]].map((corner) => map.view.project(corner).x);
    const at = (Number(compare.value) / Number(compare.max)) * map.view.getContainer().clientWidth;
    const share = (at - (left ?? 0)) / Math.max(1, (right ?? 0) - (left ?? 0));
    const from = Number(compare.value) === 0 ? 0 : Math.round(canvas.width * Math.max(0, Math.min(1, share)));
    if (from === shownFrom || !pen) return;
    shownFrom = from;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (from < canvas.width)
      pen.drawImage(picture, from, 0, canvas.width - from, canvas.height, from, 0, canvas.width - from, canvas.height);
    redraw();
  }
  compare.addEventListener('input', cut);
  map.view.on('move', cut);
}

/**
 * @param {PageMap} map
 * @param {Corners} corners
 * @param {Result} result
 * @param {Values} values
 * @param {{ value: number, name: string }[]} classes
 */
function offerValues(map, corners, result, values, classes) {
  const readOut = byId('read-out', HTMLElement);
  readOut.hidden = false;
  const names = new Map(classes.map(({ value, name }) => [value, name]));
  /** @param {number | null | undefined} value */
  function inWords(value) {
    if (value === undefined) return 'Hover or tap for values.';
    if (value === null) return 'No data here.';
    const name = names.get(value);
    const unit = result.unit ? ` ${result.unit}` : '';
    return `${name || result.name || 'Value'}: ${value}${unit}${name ? '' : ' (approximate, from the preview)'}`;
  }
  map.view.on('mousemove', ({ lngLat }) => {
    const [column, row] = placeIn(corners, [lngLat.lng, lngLat.lat]);
    const isInside = column >= 0 && column < 1 && row >= 0 && row < 1;
    const index = Math.floor(row * values.height) * values.width + Math.floor(column * values.width);
    readOut.textContent = inWords(isInside ? values.rows[index] : undefined);
  });
}

/**
 * Returns the place of a point within four corners, from the upper left, 0 to 1. The corners are nearly a parallelogram.
 * @param {Corners} corners
 * @param {Place} point
 * @returns {[number, number]}
 */
function placeIn([origin, right, , below], [x, y]) {
  const [ax, ay, bx, by] = [right[0] - origin[0], right[1] - origin[1], below[0] - origin[0], below[1] - origin[1]];
  const [dx, dy] = [x - origin[0], y - origin[1]];
  const area = ax * by - ay * bx;
  return [(dx * by - dy * bx) / area, (ax * dy - ay * dx) / area];
}

// A notification when a decision came, or the run ended, if the user wants.
const stateOf = () => byId('run', HTMLElement).dataset['state'] ?? '';
const told = new Map([
  ['REJECTED', 'It was rejected.'],
  ['APPROVED', 'The platform has your approval; processing begins.'],
  ['COMPLETED', 'Completed: the output is in the platform.'],
  ['FAILED', 'The run failed.'],
  ['EXPIRED', 'Nobody decided in time.'],
]);
let state = stateOf();
let wants = false;
function offer() {
  const button = first('#notify', HTMLElement);
  if (!button || !('Notification' in window) || Notification.permission === 'denied') return;
  button.hidden = wants;
}
document.addEventListener('click', async (event) => {
  const button = around(event, '#notify', HTMLElement);
  if (!button) return;
  wants = (await Notification.requestPermission()) === 'granted';
  button.hidden = wants;
});
/** @param {string} body */
function notify(body) {
  try {
    new Notification(document.querySelector('h1')?.textContent ?? '', { body });
  } catch {
    // Some browsers let only a service worker notify; the title says it, too.
  }
}
document.addEventListener('live', () => {
  const now = stateOf();
  void show();
  offer();
  const words = told.get(now);
  if (wants && now !== state && words) notify(words);
  state = now;
});
offer();
void pageMap();
await show();
