// A map over a coarse land, from installed packages alone. Footprints, a preview laid on its place, and the box that is seen.
import * as maplibregl from '/assets/vendor/maplibre-gl/maplibre-gl.mjs';
import feature from '/assets/vendor/topojson-client/feature.js';

const color = (name) => {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

const land = fetch('/assets/vendor/world-atlas/countries-110m.json').then(async (response) => {
  const atlas = await response.json();
  const countries = feature(atlas, atlas.objects.countries);
  for (const { geometry } of countries.features) {
    const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
    for (const rings of polygons) rings.forEach((ring, i) => (rings[i] = unrolled(ring)));
  }
  return countries;
});

/** The atlas has rings that jump from 180 to -180 degrees: drawn as they are, they would go round the world. One that goes round a pole is closed there. */
function unrolled(ring) {
  let shift = 0;
  const positions = ring.map(([x, y], i) => {
    const step = i === 0 ? 0 : x - ring[i - 1][0];
    if (Math.abs(step) > 180) shift -= Math.sign(step) * 360;
    return [x + shift, y];
  });
  if (shift === 0) return positions;
  const pole = positions[0][1] < 0 ? -90 : 90;
  return [...positions, [positions.at(-1)[0], pole], [positions[0][0], pole], positions[0]];
}

/** West may be greater than east: then the box goes over the antimeridian. */
export const boundsOf = ([west, south, east, north]) => [[west, south], [east < west ? east + 360 : east, north]];

/** Gives the map once it can be drawn on; null where the browser has no WebGL, and the page's list must do. */
export async function createMap(container, { tiles = container.dataset.tiles, bounds = [[-180, -60], [180, 75]] } = {}) {
  let map;
  try {
    map = new maplibregl.Map({
      container,
      bounds,
      attributionControl: false,
      fadeDuration: 0,
      maxPitch: 0,
      dragRotate: false,
      style: {
        version: 8,
        sources: {
          land: { type: 'geojson', data: await land, attribution: 'Natural Earth' },
          ...(tiles ? { tiles: { type: 'raster', tiles: [tiles], tileSize: 256 } } : {}),
        },
        layers: [
          { id: 'sea', type: 'background', paint: { 'background-color': color('--sea') } },
          { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': color('--raised') } },
          { id: 'borders', type: 'line', source: 'land', paint: { 'line-color': color('--line') } },
          ...(tiles ? [{ id: 'tiles', type: 'raster', source: 'tiles' }] : []),
        ],
      },
    });
  } catch {
    container.hidden = true;
    return null;
  }
  map.addControl(new maplibregl.NavigationControl({ showCompass: false }));
  await new Promise((resolve) => map.once('load', resolve));
  container.dataset.ready = 'true';
  return map;
}

function centerOf({ type, coordinates }) {
  const ring = type === 'MultiPolygon' ? coordinates[0][0] : coordinates[0];
  const corners = ring.slice(0, -1);
  return [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / corners.length);
}

/** Draws footprints; `onChosen` is told the properties of the one that is clicked. */
export function drawFootprints(map, features, onChosen) {
  const data = { type: 'FeatureCollection', features };
  // A dot for each, where its footprint is too small to be seen.
  const places = { type: 'FeatureCollection', features: features.map(({ geometry, properties }) => ({ type: 'Feature', geometry: { type: 'Point', coordinates: centerOf(geometry) }, properties })) };
  const source = map.getSource('footprints');
  if (source) {
    source.setData(data);
    map.getSource('places').setData(places);
    return;
  }
  map.addSource('footprints', { type: 'geojson', data });
  map.addSource('places', { type: 'geojson', data: places });
  map.addLayer({ id: 'footprints', type: 'fill', source: 'footprints', paint: { 'fill-color': color('--accent'), 'fill-opacity': 0.25 } });
  map.addLayer({ id: 'outlines', type: 'line', source: 'footprints', paint: { 'line-color': color('--accent'), 'line-width': 2 } });
  map.addLayer({ id: 'places', type: 'circle', source: 'places', maxzoom: 8, paint: { 'circle-color': color('--accent'), 'circle-radius': 5, 'circle-stroke-color': color('--raised'), 'circle-stroke-width': 1 } });
  if (!onChosen) return;
  map.on('click', 'places', ({ features: [first] }) => onChosen(first.properties));
  map.on('click', 'footprints', ({ features: [first] }) => onChosen(first.properties));
  map.on('mouseenter', 'footprints', () => (map.getCanvas().style.cursor = 'pointer'));
  map.on('mouseleave', 'footprints', () => (map.getCanvas().style.cursor = ''));
}

/** Of a box, clockwise from the upper left. */
export function cornersOf(box) {
  const [[west, south], [east, north]] = boundsOf(box);
  return [[west, north], [east, north], [east, south], [west, south]];
}

/** Lays an image on its corners, clockwise from the upper left. */
export function drawImage(map, url, coordinates) {
  map.addSource('preview', { type: 'image', url, coordinates });
  map.addLayer({ id: 'preview', type: 'raster', source: 'preview', paint: { 'raster-fade-duration': 0 } });
}

/** What a page has put into a data block, by its id. */
export const dataOf = (id) => JSON.parse(document.getElementById(id).textContent);
