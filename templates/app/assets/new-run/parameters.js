// @ts-check
// The parameters of the step: their values, the choices of lists, and areas on the map.
import { all, byId, first } from '../shared/dom.js';
import { cornersOf, drawPolygon, seenBox } from '../shared/map.js';
import { allIn, fieldOf, firstIn, parameterFields } from './form.js';

/** @import { PageMap } from '../shared/map.js' */
/** @import { Geometry } from 'geojson' */

/**
 * Returns the values of all parameters that have one.
 * @returns {Record<string, string | number | boolean>}
 */
export function parameters() {
  /** @type {Record<string, string | number | boolean>} */
  const values = {};
  for (const field of parameterFields()) {
    const { type, optional } = field.dataset;
    if (type === 'boolean') values[field.name] = field instanceof HTMLInputElement && field.checked;
    else if (field.value !== '' || optional === undefined)
      values[field.name] =
        type === 'string' || type === 'area' || field.value === '' ? field.value : Number(field.value);
  }
  return values;
}

/**
 * Fills the fields of parameters.
 * @param {Record<string, string | number | boolean>} values
 */
export function fill(values) {
  for (const field of parameterFields()) {
    const value = values[field.name];
    if (field instanceof HTMLInputElement && field.type === 'checkbox') field.checked = value === true;
    else field.value = value === undefined ? '' : String(value);
  }
}

/**
 * All choices of each list, before bands that are missing remove some.
 * @type {Map<HTMLDataListElement, HTMLOptionElement[]>}
 */
const allChoices = new Map(all('datalist[id^="choices-"]', HTMLDataListElement).map((one) => [one, [...one.options]]));

/**
 * Offers these bands to the parameters that choose one, and the choices that need no other band. Without bands, offers all choices.
 * @param {string[]} names
 */
export function offerBands(names) {
  first('#bands', HTMLDataListElement)?.replaceChildren(...names.map((name) => new Option(name, name)));
  const known = new Set(names.map((name) => name.toLowerCase()));
  for (const [list, options] of allChoices)
    list.replaceChildren(
      ...options.filter(({ dataset: { bands } }) => {
        if (known.size === 0 || !bands) return true;
        return bands.split(' ').every((band) => known.has(band.toLowerCase()));
      }),
    );
}

/**
 * Shows the title of a choice below its field.
 * @param {HTMLInputElement} field
 */
function showChoice(field) {
  const list = byId(`choices-${field.name}`, HTMLDataListElement);
  const choice = allChoices.get(list)?.find(({ value }) => value === field.value);
  byId(`choice-${field.name}`, HTMLElement).textContent =
    choice?.textContent ?? (field.value === '' ? '' : 'Type to find one.');
}
for (const field of all('[data-choices]', HTMLInputElement)) field.addEventListener('input', () => showChoice(field));

/**
 * Offers the map to each parameter that is an area.
 * @param {PageMap} map
 * @param {() => void} onChanged
 */
export function offerAreas(map, onChanged) {
  for (const button of allIn('[data-draws]', HTMLButtonElement)) offerArea(map, button, onChanged);
}

/**
 * An area can be drawn, taken from the map, or typed.
 * @param {PageMap} map
 * @param {HTMLButtonElement} button
 * @param {() => void} onChanged
 */
function offerArea(map, button, onChanged) {
  const name = button.dataset['draws'] ?? '';
  const field = fieldOf(name);
  const take = firstIn(`[data-takes="${CSS.escape(name)}"]`, HTMLButtonElement);
  if (!field || !take) return;
  /** @param {Geometry} geometry */
  const set = (geometry) => {
    field.value = JSON.stringify(geometry);
    onChanged();
  };
  const show = drawPolygon(map, button, `parameter-${name}`, set);
  const showTyped = () => {
    try {
      const { type, geometry, features, coordinates } = JSON.parse(field.value);
      show(geometry ?? features?.[0]?.geometry ?? (coordinates ? { type, coordinates } : null));
    } catch {
      show(null);
    }
  };
  field.addEventListener('change', showTyped);
  take.addEventListener('click', () => {
    const [northWest, northEast, southEast, southWest] = cornersOf(seenBox(map));
    // Corners in the middle, because an edge longer than 180° would go the other way round.
    const middleOf = (/** @type {number[]} */ a, /** @type {number[]} */ b) => [
      ((a[0] ?? 0) + (b[0] ?? 0)) / 2,
      a[1] ?? 0,
    ];
    const corners = [
      northWest,
      middleOf(northWest, northEast),
      northEast,
      southEast,
      middleOf(southEast, southWest),
      southWest,
    ].map((place) => place.map((n) => Number(n.toFixed(6))));
    /** @type {Geometry} */
    const geometry = { type: 'Polygon', coordinates: [[...corners, ...corners.slice(0, 1)]] };
    show(geometry);
    set(geometry);
  });
  for (const one of [button, take]) one.hidden = false;
  showTyped();
}
