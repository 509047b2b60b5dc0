// @ts-check
// Maps: Natural Earth at 1:10m as vector tiles, a graticule, a scale, the pointer's place. Footprints, pictures on their corners, an area drawn by hand.
import { color, graticule, loadLibrary, places } from './map-base.js';

/** @import { Bounds, Library, Place } from './map-base.js' */
/** @import { ExpressionSpecification, LngLat, Map as LibraryMap } from 'maplibre-gl' */
/** @import { Feature, FeatureCollection, Geometry, MultiPolygon, Polygon } from 'geojson' */

/** @typedef {readonly number[]} Box west, south, east, north in degrees */
/** @typedef {[Place, Place, Place, Place]} Corners clockwise from the upper left */

/**
 * A map of a page.
 * @typedef {object} PageMap
 * @property {LibraryMap} view
 * @property {boolean} isDrawing true while the user draws, so that a click chooses nothing
 * @property {(place: LngLat, content: Node) => unknown} openPopup
 */

/**
 * Returns a box as bounds. If west is greater than east, the box crosses the antimeridian.
 * @param {Box} box
 * @returns {Bounds}
 */
export const boundsOf = ([west = 0, south = 0, east = 0, north = 0]) => [
  [west, south],
  [east < west ? east + 360 : east, north],
];

/**
 * Returns the bounds of all boxes.
 * @param {readonly Box[]} boxes
 * @returns {Bounds}
 */
export const boundsAround = (boxes) => boundsOfPlaces(boxes.flatMap(boundsOf));

/**
 * Returns the bounds of all places.
 * @param {readonly Place[]} all
 * @returns {Bounds}
 */
export function boundsOfPlaces(all) {
  const [lons, lats] = [all.map(([lon]) => lon), all.map(([, lat]) => lat)];
  return [
    [Math.min(...lons), Math.min(...lats)],
    [Math.max(...lons), Math.max(...lats)],
  ];
}

/**
 * Resolves when the user touches the map with the pointer, a finger or the keyboard. Until then the page shows a picture and fetches nothing.
 * @param {HTMLElement} container
 * @returns {Promise<void>}
 */
export function whenWanted(container) {
  const wake = Object.assign(document.createElement('button'), {
    type: 'button',
    className: 'plain tiny wake',
    textContent: 'Interact with map',
  });
  container.append(wake);
  return new Promise((resolve) => {
    for (const event of ['pointerenter', 'pointerdown', 'focusin', 'click'])
      container.addEventListener(event, resolve, { once: true });
  }).then(() => wake.remove());
}

/** @type {Bounds} */
const inhabited = [
  [-180, -60],
  [180, 75],
];

/**
 * Returns the map once it can be drawn on; null if the browser has no WebGL: the page keeps the picture and its list.
 * @param {HTMLElement} container
 * @param {{ tiles?: string | undefined, bounds?: Bounds }} [options]
 * @returns {Promise<PageMap | null>}
 */
export async function createMap(container, { tiles = container.dataset['tiles'], bounds = inhabited } = {}) {
  const picture = container.querySelector('.map-picture');
  /** @type {LibraryMap} */
  let map;
  /** @type {Library} */
  let maplibregl;
  try {
    maplibregl = await loadLibrary();
    map = new maplibregl.Map({
      container,
      bounds,
      attributionControl: false,
      fadeDuration: 0,
      maxPitch: 0,
      dragRotate: false,
      cooperativeGestures: matchMedia('(pointer: coarse)').matches,
      style: {
        version: 8,
        sources: {
          earth: {
            type: 'vector',
            url: 'pmtiles:///assets/shared/map/natural-earth.pmtiles',
            attribution: 'Natural Earth',
            maxzoom: 6,
          },
          graticule: { type: 'geojson', data: { type: 'FeatureCollection', features: [] } },
          ...(tiles ? { tiles: { type: /** @type {const} */ ('raster'), tiles: [tiles], tileSize: 256 } } : {}),
        },
        layers: [
          { id: 'sea', type: 'background', paint: { 'background-color': color('--sea') } },
          {
            id: 'land',
            type: 'fill',
            source: 'earth',
            'source-layer': 'land',
            paint: { 'fill-color': color('--land') },
          },
          {
            id: 'lakes',
            type: 'fill',
            source: 'earth',
            'source-layer': 'lakes',
            paint: { 'fill-color': color('--sea') },
          },
          {
            id: 'rivers',
            type: 'line',
            source: 'earth',
            'source-layer': 'rivers',
            paint: {
              'line-color': color('--river'),
              'line-width': ['interpolate', ['linear'], ['zoom'], 3, 0.5, 9, 2],
            },
          },
          {
            id: 'graticule',
            type: 'line',
            source: 'graticule',
            paint: { 'line-color': color('--quiet'), 'line-opacity': 0.25, 'line-width': 0.6 },
          },
          {
            id: 'coast',
            type: 'line',
            source: 'earth',
            'source-layer': 'land',
            paint: { 'line-color': color('--border'), 'line-width': 0.7 },
          },
          {
            id: 'borders',
            type: 'line',
            source: 'earth',
            'source-layer': 'borders',
            paint: { 'line-color': color('--border'), 'line-dasharray': [3, 2], 'line-width': 0.9 },
          },
          ...(tiles ? [{ id: 'tiles', type: /** @type {const} */ ('raster'), source: 'tiles' }] : []),
          places('cities', 2, 11, { filter: ['<=', ['get', 'rank'], 4], opacity: 0.9 }),
          places('towns', 5, 11, { filter: ['>', ['get', 'rank'], 4], opacity: 0.8 }),
        ],
      },
    });
  } catch {
    if (!picture) container.hidden = true;
    return null;
  }
  map.addControl(new maplibregl.NavigationControl({ showCompass: false }));
  map.addControl(new maplibregl.ScaleControl({ maxWidth: 120 }), 'bottom-left');
  map.addControl(new maplibregl.AttributionControl({ compact: false }), 'bottom-right');
  const drawGraticule = () => setData(map, 'graticule', graticule(map.getZoom(), map.getBounds().toArray()));
  map.on('moveend', drawGraticule);
  const readOut = Object.assign(document.createElement('output'), { className: 'coordinates', hidden: true });
  readOut.setAttribute('aria-live', 'off');
  container.append(readOut);
  map.on('mousemove', ({ lngLat: { lng, lat } }) => {
    const digits = Math.max(1, Math.min(5, Math.round(map.getZoom() / 2.5)));
    readOut.hidden = false;
    readOut.textContent = `${Math.abs(lat).toFixed(digits)}° ${lat < 0 ? 'S' : 'N'} ${Math.abs(wrap(lng)).toFixed(digits)}° ${wrap(lng) < 0 ? 'W' : 'E'}`;
  });
  map.on('mouseout', () => (readOut.hidden = true));
  await new Promise((resolve) => map.once('load', resolve));
  drawGraticule();
  picture?.remove();
  container.dataset['ready'] = 'true';
  return {
    view: map,
    isDrawing: false,
    openPopup: (place, content) =>
      new maplibregl.Popup({ maxWidth: '20rem' }).setLngLat(place).setDOMContent(content).addTo(map),
  };
}

/** @type {import('maplibre-gl').FilterSpecification} */
const noFootprint = ['==', ['get', 'key'], ''];

/**
 * Marks the footprint with this key, or none.
 * @param {PageMap} map
 * @param {string | null} key
 */
export function markFootprint({ view }, key) {
  if (view.getLayer('hovered')) view.setFilter('hovered', key === null ? noFootprint : ['==', ['get', 'key'], key]);
}

/**
 * Calls `onHovered` with the key of the footprint under the pointer, or null.
 * @param {PageMap} map
 * @param {(key: string | null) => void} onHovered
 */
export function watchFootprints({ view }, onHovered) {
  for (const layer of ['footprints', 'dots']) {
    view.on('mousemove', layer, ({ features }) => onHovered(String(features?.[0]?.properties['key'] ?? '') || null));
    view.on('mouseleave', layer, () => onHovered(null));
  }
}

/** @type {FeatureCollection} */
const nothing = { type: 'FeatureCollection', features: [] };

/**
 * Replaces the features of a source.
 * @param {LibraryMap} map
 * @param {string} id
 * @param {FeatureCollection} data
 */
function setData(map, id, data) {
  const source = /** @type {import('maplibre-gl').GeoJSONSource | undefined} */ (map.getSource(id));
  void source?.setData(data);
}

/**
 * Returns a longitude between -180 and 180 degrees.
 * @param {number} lng
 */
export const wrap = (lng) => ((((lng + 180) % 360) + 360) % 360) - 180;

/**
 * Returns the box that the map shows; all longitudes if it shows the Earth more than once.
 * @param {PageMap} map
 * @returns {[number, number, number, number]}
 */
export function seenBox({ view }) {
  const bounds = view.getBounds();
  const [west, south, east, north] = [
    bounds.getWest(),
    Math.max(-90, bounds.getSouth()),
    bounds.getEast(),
    Math.min(90, bounds.getNorth()),
  ];
  return east - west >= 360 ? [-180, south, 180, north] : [wrap(west), south, wrap(east), north];
}

/**
 * @param {Polygon | MultiPolygon} footprint
 * @returns {Place}
 */
function centerOf({ type, coordinates }) {
  const ring = (type === 'MultiPolygon' ? coordinates[0]?.[0] : coordinates[0]) ?? [];
  const corners = ring.slice(0, -1);
  /** @param {0 | 1} axis */
  const mean = (axis) => corners.reduce((sum, corner) => sum + (corner[axis] ?? 0), 0) / corners.length;
  return [mean(0), mean(1)];
}

/**
 * Draws footprints. `onChosen` gets the properties of all footprints under a click, and its place.
 * @template {object} Properties
 * @param {PageMap} map
 * @param {Feature<Polygon | MultiPolygon, Properties>[]} features
 * @param {(properties: Properties[], place: LngLat) => void} [onChosen]
 */
export function drawFootprints(map, features, onChosen) {
  const { view } = map;
  /** @type {FeatureCollection} */
  const data = { type: 'FeatureCollection', features };
  /**
   * A dot for each footprint that is too small to be seen.
   * @type {FeatureCollection}
   */
  const dots = {
    type: 'FeatureCollection',
    features: features.map(({ geometry, properties }) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: centerOf(geometry) },
      properties,
    })),
  };
  if (view.getSource('footprints')) {
    setData(view, 'footprints', data);
    setData(view, 'dots', dots);
    return;
  }
  view.addSource('footprints', { type: 'geojson', data });
  view.addSource('dots', { type: 'geojson', data: dots });
  /** @type {ExpressionSpecification} */
  const isChosen = ['boolean', ['get', 'chosen'], false];
  view.addLayer({
    id: 'footprints',
    type: 'fill',
    source: 'footprints',
    paint: {
      'fill-color': ['case', isChosen, color('--result'), color('--accent')],
      // A footprint whose scene the map shows is its outline alone.
      'fill-opacity': ['case', ['boolean', ['get', 'drawn'], false], 0, isChosen, 0.45, 0.2],
    },
  });
  view.addLayer({
    id: 'outlines',
    type: 'line',
    source: 'footprints',
    paint: {
      'line-color': ['case', isChosen, color('--result'), color('--accent')],
      'line-width': ['case', isChosen, 3, 1.5],
    },
  });
  view.addLayer({
    id: 'hovered',
    type: 'line',
    source: 'footprints',
    filter: noFootprint,
    paint: { 'line-color': color('--ink'), 'line-width': 3 },
  });
  view.addLayer({
    id: 'dots',
    type: 'circle',
    source: 'dots',
    maxzoom: 8,
    paint: {
      'circle-color': ['case', isChosen, color('--result'), color('--accent')],
      'circle-radius': 6,
      'circle-stroke-color': color('--raised'),
      'circle-stroke-width': 1.5,
    },
  });
  if (!onChosen) return;
  view.on('click', ({ point: { x, y }, lngLat }) => {
    if (map.isDrawing) return;
    const hit = view.queryRenderedFeatures(
      [
        [x - 12, y - 12],
        [x + 12, y + 12],
      ],
      { layers: ['dots'] },
    );
    const under = view.queryRenderedFeatures([x, y], { layers: ['footprints'] });
    const found = [
      ...new Map([...under, ...hit].map(({ properties }) => [JSON.stringify(properties), properties])).values(),
    ];
    if (found.length > 0) onChosen(/** @type {Properties[]} */ (found), lngLat);
  });
  for (const layer of ['footprints', 'dots']) {
    view.on('mouseenter', layer, () => (view.getCanvas().style.cursor = 'pointer'));
    view.on('mouseleave', layer, () => (view.getCanvas().style.cursor = ''));
  }
}

/**
 * Returns a place on the map, which ends before the poles.
 * @param {Place} place
 * @returns {Place}
 */
export const onMap = ([lon, lat]) => [lon, Math.max(-85, Math.min(85, lat))];

/**
 * Returns the corners of a box on the map.
 * @param {Box} box
 * @returns {Corners}
 */
export function cornersOf(box) {
  const [[west, south], [east, north]] = boundsOf(box);
  return [onMap([west, north]), onMap([east, north]), onMap([east, south]), onMap([west, south])];
}

/**
 * Adds a layer of a picture below the names of places.
 * @param {PageMap} map
 * @param {string} id of layer and source
 */
function addPicture({ view }, id) {
  view.addLayer(
    { id, type: 'raster', source: id, paint: { 'raster-fade-duration': 0, 'raster-resampling': 'nearest' } },
    'cities',
  );
}

/**
 * Draws an image on its corners.
 * @param {PageMap} map
 * @param {string} url
 * @param {Corners} coordinates
 */
export function drawImage(map, url, coordinates, id = 'preview') {
  removePicture(map, id);
  map.view.addSource(id, { type: 'image', url, coordinates });
  addPicture(map, id);
}

/**
 * Removes the picture with this id, if there is one.
 * @param {PageMap} map
 * @param {string} id
 */
export function removePicture({ view }, id) {
  if (view.getLayer(id)) view.removeLayer(id);
  if (view.getSource(id)) view.removeSource(id);
}

/**
 * Draws a canvas on its corners. Call the returned function after each change of the canvas.
 * @param {PageMap} map
 * @param {HTMLCanvasElement} canvas
 * @param {Corners} coordinates
 * @param {string} id
 */
export function drawCanvas(map, canvas, coordinates, id) {
  const { view } = map;
  view.addSource(id, { type: 'canvas', canvas, coordinates, animate: false });
  addPicture(map, id);
  return () => {
    const source = /** @type {import('maplibre-gl').CanvasSource} */ (view.getSource(id));
    source.play();
    void view.once('render', () => source.pause());
    view.triggerRepaint();
  };
}

/**
 * Lets the user draw a box with the pointer or a finger. Returns a function that shows a box, or none.
 * @param {PageMap} map
 * @param {HTMLButtonElement} button
 * @param {(box: [number, number, number, number]) => void} onDrawn
 * @returns {(box: Box | null) => void}
 */
export function drawBox(map, button, onDrawn) {
  const { view } = map;
  const canvas = view.getCanvas();
  view.addSource('area', { type: 'geojson', data: nothing });
  view.addLayer({
    id: 'area',
    type: 'line',
    source: 'area',
    paint: { 'line-color': color('--result'), 'line-width': 2.5, 'line-dasharray': [2, 1] },
  });
  /** @param {Box | null} box */
  const show = (box) =>
    setData(view, 'area', {
      type: 'FeatureCollection',
      features: box
        ? [
            {
              type: 'Feature',
              properties: {},
              geometry: { type: 'Polygon', coordinates: [[...cornersOf(box), cornersOf(box)[0]]] },
            },
          ]
        : [],
    });
  /** @param {PointerEvent} event */
  const placeOf = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return view.unproject([event.clientX - left, event.clientY - top]);
  };
  button.setAttribute('aria-pressed', 'false');
  button.addEventListener('click', () => {
    const isOn = button.getAttribute('aria-pressed') !== 'true';
    // One at a time.
    if (isOn && map.isDrawing) return;
    button.setAttribute('aria-pressed', String(isOn));
    map.isDrawing = isOn;
    canvas.style.cursor = isOn ? 'crosshair' : '';
    canvas.style.touchAction = isOn ? 'none' : '';
    view.dragPan[isOn ? 'disable' : 'enable']();
  });
  /** @type {LngLat | null} */
  let from = null;
  canvas.addEventListener('pointercancel', () => (from = null));
  /**
   * @param {LngLat} one
   * @param {LngLat} other
   * @returns {[number, number, number, number]}
   */
  const boxBetween = (one, other) => [
    Math.min(one.lng, other.lng),
    Math.min(one.lat, other.lat),
    Math.max(one.lng, other.lng),
    Math.max(one.lat, other.lat),
  ];
  canvas.addEventListener('pointerdown', (event) => {
    if (button.getAttribute('aria-pressed') !== 'true') return;
    from = placeOf(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => from && show(boxBetween(from, placeOf(event))));
  canvas.addEventListener('pointerup', (event) => {
    if (!from) return;
    const [west, south, east, north] = boxBetween(from, placeOf(event));
    from = null;
    button.click();
    if (east - west > 1e-6 && north - south > 1e-6)
      onDrawn([wrap(west), Math.max(-85, south), wrap(east), Math.min(85, north)]);
  });
  return show;
}

/**
 * Lets the user draw a polygon after a press of `button`. Each click on the map sets a corner. A click on the first corner
 * or on the button ends the polygon, and Escape gives it up. Returns a function that shows a geometry, or none.
 * @param {PageMap} map
 * @param {HTMLButtonElement} button
 * @param {string} id of the layers
 * @param {(polygon: Polygon) => void} onDrawn
 * @returns {(geometry: Geometry | null) => void}
 */
export function drawPolygon(map, button, id, onDrawn) {
  const { view } = map;
  const canvas = view.getCanvas();
  const idle = button.textContent;
  view.addSource(id, { type: 'geojson', data: nothing });
  view.addLayer({ id: `${id}-inside`, type: 'fill', source: id, paint: { 'fill-color': color('--result'), 'fill-opacity': 0.15 } }); // oxfmt-ignore
  view.addLayer({ id, type: 'line', source: id, paint: { 'line-color': color('--result'), 'line-width': 2.5 } });
  view.addLayer({ id: `${id}-corners`, type: 'circle', source: id, paint: { 'circle-color': color('--result'), 'circle-radius': 4 } }); // oxfmt-ignore
  /** @param {Geometry | null} geometry */
  const show = (geometry) =>
    setData(view, id, {
      type: 'FeatureCollection',
      features: geometry ? [{ type: 'Feature', properties: {}, geometry }] : [],
    });
  /**
   * Corners of the polygon that is being drawn.
   * @type {Place[] | null}
   */
  let corners = null;
  /** Longitude of the map less that of the polygon, in whole turns. */
  let turn = 0;
  /** @type {Geometry | null} */
  let shown = null;
  /** @param {boolean} isKept */
  function end(isKept) {
    const [first, ...others] = corners ?? [];
    corners = null;
    // Others hear of the same click after this.
    setTimeout(() => (map.isDrawing = false));
    canvas.style.cursor = '';
    button.setAttribute('aria-pressed', 'false');
    button.textContent = idle;
    if (!isKept || first === undefined || others.length < 2) return show(shown);
    /** @type {Polygon} */
    const drawn = { type: 'Polygon', coordinates: [[first, ...others, first]] };
    shown = drawn;
    show(drawn);
    onDrawn(drawn);
  }
  button.setAttribute('aria-pressed', 'false');
  button.addEventListener('click', () => {
    if (corners) return end(true);
    // One at a time.
    if (map.isDrawing) return;
    corners = [];
    map.isDrawing = true;
    canvas.style.cursor = 'crosshair';
    button.setAttribute('aria-pressed', 'true');
    button.textContent = 'End the area';
    show(null);
    view.getContainer().scrollIntoView({ block: 'nearest' });
  });
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && corners && end(false));
  view.on('click', ({ lngLat, point }) => {
    if (!corners) return;
    const first = corners.length > 2 && corners[0] ? view.project(corners[0]) : null;
    if (first && Math.hypot(first.x - point.x, first.y - point.y) < 12) return end(true);
    // Corners go on past 180°, so that no edge jumps. The app splits the polygon there.
    if (corners.length === 0) turn = lngLat.lng - wrap(lngLat.lng);
    corners.push([Number((lngLat.lng - turn).toFixed(6)), Number(lngLat.lat.toFixed(6))]);
    show({ type: corners.length > 1 ? 'LineString' : 'MultiPoint', coordinates: corners });
  });
  return (geometry) => {
    shown = geometry;
    show(geometry);
  };
}
