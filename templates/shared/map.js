// A map that says where: Natural Earth at 1:10m as vector tiles, a graticule, a scale, the pointer's place. Footprints, pictures laid on their corners, an area drawn by hand.
import { color, graticule, loadLibrary, places } from './map-base.js';

/** West may be greater than east: then the box goes over the antimeridian. */
export const boundsOf = ([west, south, east, north]) => [
  [west, south],
  [east < west ? east + 360 : east, north],
];

/** The box around all of them. */
export function boundsAround(boxes) {
  const all = boxes.map(boundsOf);
  const edge = (corner, axis, pick) => pick(...all.map((one) => one[corner][axis]));
  return [
    [edge(0, 0, Math.min), edge(0, 1, Math.min)],
    [edge(1, 0, Math.max), edge(1, 1, Math.max)],
  ];
}

/** Resolves when somebody means the map: with the pointer, a finger, the keyboard. Until then its picture stands there, and nothing is fetched. */
export function whenWanted(container) {
  const wake = Object.assign(document.createElement('button'), {
    type: 'button',
    className: 'plain tiny wake',
    textContent: 'Move the map',
  });
  container.append(wake);
  return new Promise((resolve) => {
    for (const event of ['pointerenter', 'pointerdown', 'focusin', 'click'])
      container.addEventListener(event, resolve, { once: true });
  }).then(() => wake.remove());
}

/** Gives the map once it can be drawn on; null where the browser has no WebGL: the picture stays, and the page's list must do. */
export async function createMap(
  container,
  {
    tiles = container.dataset.tiles,
    bounds = [
      [-180, -60],
      [180, 75],
    ],
  } = {},
) {
  const picture = container.querySelector('.map-picture');
  let map;
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
          ...(tiles ? { tiles: { type: 'raster', tiles: [tiles], tileSize: 256 } } : {}),
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
          ...(tiles ? [{ id: 'tiles', type: 'raster', source: 'tiles' }] : []),
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
  const drawGraticule = () => map.getSource('graticule').setData(graticule(map.getZoom(), map.getBounds().toArray()));
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
  map.popupOf = (lngLat, content) =>
    new maplibregl.Popup({ maxWidth: '20rem' }).setLngLat(lngLat).setDOMContent(content).addTo(map);
  container.dataset.ready = 'true';
  return map;
}

export const wrap = (lng) => ((((lng + 180) % 360) + 360) % 360) - 180;

/** The box that is seen: west, south, east, north; the whole Earth where it goes round. */
export function seenBox(map) {
  const bounds = map.getBounds();
  const [west, south, east, north] = [
    bounds.getWest(),
    Math.max(-90, bounds.getSouth()),
    bounds.getEast(),
    Math.min(90, bounds.getNorth()),
  ];
  return east - west >= 360 ? [-180, south, 180, north] : [wrap(west), south, wrap(east), north];
}

function centerOf({ type, coordinates }) {
  const ring = type === 'MultiPolygon' ? coordinates[0][0] : coordinates[0];
  const corners = ring.slice(0, -1);
  return [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / corners.length);
}

/** Draws footprints; `onChosen` is told the properties of all that lie under a click, and its place. */
export function drawFootprints(map, features, onChosen) {
  const data = { type: 'FeatureCollection', features };
  // A dot for each, where its footprint is too small to be seen.
  const dots = {
    type: 'FeatureCollection',
    features: features.map(({ geometry, properties }) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: centerOf(geometry) },
      properties,
    })),
  };
  const source = map.getSource('footprints');
  if (source) {
    source.setData(data);
    map.getSource('dots').setData(dots);
    return;
  }
  map.addSource('footprints', { type: 'geojson', data });
  map.addSource('dots', { type: 'geojson', data: dots });
  const isChosen = ['boolean', ['get', 'chosen'], false];
  map.addLayer({
    id: 'footprints',
    type: 'fill',
    source: 'footprints',
    paint: {
      'fill-color': ['case', isChosen, color('--result'), color('--accent')],
      'fill-opacity': ['case', isChosen, 0.45, 0.2],
    },
  });
  map.addLayer({
    id: 'outlines',
    type: 'line',
    source: 'footprints',
    paint: {
      'line-color': ['case', isChosen, color('--result'), color('--accent')],
      'line-width': ['case', isChosen, 3, 1.5],
    },
  });
  map.addLayer({
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
  map.on('click', ({ point: { x, y }, lngLat }) => {
    if (map.isDrawing) return;
    const hit = map.queryRenderedFeatures(
      [
        [x - 12, y - 12],
        [x + 12, y + 12],
      ],
      { layers: ['dots'] },
    );
    const under = map.queryRenderedFeatures([x, y], { layers: ['footprints'] });
    const found = [
      ...new Map([...under, ...hit].map(({ properties }) => [JSON.stringify(properties), properties])).values(),
    ];
    if (found.length > 0) onChosen(found, lngLat);
  });
  for (const layer of ['footprints', 'dots']) {
    map.on('mouseenter', layer, () => (map.getCanvas().style.cursor = 'pointer'));
    map.on('mouseleave', layer, () => (map.getCanvas().style.cursor = ''));
  }
}

/** Of a box, clockwise from the upper left. The map ends before the poles. */
export function cornersOf(box) {
  const [[west, south], [east, north]] = boundsOf(box);
  return [
    [west, north],
    [east, north],
    [east, south],
    [west, south],
  ].map(([lon, lat]) => [lon, Math.max(-85, Math.min(85, lat))]);
}

/** Lays an image on its corners, clockwise from the upper left; below the names of places. */
export function drawImage(map, url, coordinates, id = 'preview') {
  map.addSource(id, { type: 'image', url, coordinates });
  map.addLayer(
    { id, type: 'raster', source: id, paint: { 'raster-fade-duration': 0, 'raster-resampling': 'nearest' } },
    'cities',
  );
}

/** The same of a canvas, which can be drawn on again: then call what this gives. */
export function drawCanvas(map, canvas, coordinates, id) {
  map.addSource(id, { type: 'canvas', canvas, coordinates, animate: false });
  map.addLayer(
    { id, type: 'raster', source: id, paint: { 'raster-fade-duration': 0, 'raster-resampling': 'nearest' } },
    'cities',
  );
  return () => {
    const source = map.getSource(id);
    source.play();
    map.once('render', () => source.pause());
    map.triggerRepaint();
  };
}

/** Lets a box be drawn with the pointer or a finger; `onDrawn` is told west, south, east, north. */
export function drawBox(map, button, onDrawn) {
  const canvas = map.getCanvas();
  map.addSource('area', { type: 'geojson', data: { type: 'FeatureCollection', features: [] } });
  map.addLayer({
    id: 'area',
    type: 'line',
    source: 'area',
    paint: { 'line-color': color('--result'), 'line-width': 2.5, 'line-dasharray': [2, 1] },
  });
  const show = (box) =>
    map.getSource('area').setData({
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
  const placeOf = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return map.unproject([event.clientX - left, event.clientY - top]);
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
    map.dragPan[isOn ? 'disable' : 'enable']();
  });
  let from = null;
  canvas.addEventListener('pointercancel', () => (from = null));
  const boxTo = (to) => [
    Math.min(from.lng, to.lng),
    Math.min(from.lat, to.lat),
    Math.max(from.lng, to.lng),
    Math.max(from.lat, to.lat),
  ];
  canvas.addEventListener('pointerdown', (event) => {
    if (button.getAttribute('aria-pressed') !== 'true') return;
    from = placeOf(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => from && show(boxTo(placeOf(event))));
  canvas.addEventListener('pointerup', (event) => {
    if (!from) return;
    const [west, south, east, north] = boxTo(placeOf(event));
    from = null;
    button.click();
    if (east - west > 1e-6 && north - south > 1e-6)
      onDrawn([wrap(west), Math.max(-85, south), wrap(east), Math.min(85, north)]);
  });
  return show;
}

/** What a press of `button` begins: each click on the map sets a corner; a click on the first one, or the button again, ends it, and Escape gives it up. Returns what shows rings. */
export function drawPolygon(map, button, id, onDrawn) {
  const canvas = map.getCanvas();
  const idle = button.textContent;
  map.addSource(id, { type: 'geojson', data: { type: 'FeatureCollection', features: [] } });
  map.addLayer({ id: `${id}-inside`, type: 'fill', source: id, paint: { 'fill-color': color('--result'), 'fill-opacity': 0.15 } }); // oxfmt-ignore
  map.addLayer({ id, type: 'line', source: id, paint: { 'line-color': color('--result'), 'line-width': 2.5 } });
  map.addLayer({ id: `${id}-corners`, type: 'circle', source: id, paint: { 'circle-color': color('--result'), 'circle-radius': 4 } }); // oxfmt-ignore
  const show = (geometry) =>
    map.getSource(id).setData({
      type: 'FeatureCollection',
      features: geometry ? [{ type: 'Feature', properties: {}, geometry }] : [],
    });
  let corners = null;
  let shown = null;
  const showCorners = () => {
    const type = corners.length > 1 ? 'LineString' : 'MultiPoint';
    show(corners.length > 0 ? { type, coordinates: corners } : null);
  };
  function end(isKept) {
    const [drawn, isWhole] = [corners, corners.length > 2 && isKept];
    corners = null;
    // Others hear of the same click after this.
    setTimeout(() => (map.isDrawing = false));
    canvas.style.cursor = '';
    button.setAttribute('aria-pressed', 'false');
    button.textContent = idle;
    if (!isWhole) return show(shown);
    shown = { type: 'Polygon', coordinates: [[...drawn, drawn[0]]] };
    show(shown);
    onDrawn(shown);
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
    map.getContainer().scrollIntoView({ block: 'nearest' });
  });
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && corners && end(false));
  map.on('click', ({ lngLat, point }) => {
    if (!corners) return;
    const first = corners.length > 2 ? map.project(corners[0]) : null;
    if (first && Math.hypot(first.x - point.x, first.y - point.y) < 12) return end(true);
    corners.push([Number(wrap(lngLat.lng).toFixed(6)), Number(lngLat.lat.toFixed(6))]);
    showCorners();
  });
  return (geometry) => {
    shown = geometry;
    show(geometry);
  };
}

/** What a page has put into a data block, by its id. */
export const dataOf = (id) => JSON.parse(document.getElementById(id).textContent);
