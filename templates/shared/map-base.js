// @ts-check
// Parts of every map: the library, colours of the style sheet, the graticule, and names of places.

/** @typedef {typeof import('maplibre-gl')} Library */
/** @typedef {[number, number]} Place longitude and latitude in degrees */
/** @typedef {[Place, Place]} Bounds south-west and north-east */

const vendor = '/assets/vendor';
/** @type {Promise<Library> | null} */
let library = null;

/**
 * Fetches MapLibre, which is large, when the first map is made.
 * @returns {Promise<Library>}
 */
export function loadLibrary() {
  return (library ??= (async () => {
    /** @type {[Library, unknown, unknown]} */
    const [maplibregl] = await Promise.all([
      import(`${vendor}/maplibre-gl/maplibre-gl.mjs`),
      classicScript(`${vendor}/pmtiles/pmtiles.js`),
      styleSheet(`${vendor}/maplibre-gl/maplibre-gl.css`),
    ]);
    const { Protocol } = /** @type {{ pmtiles: typeof import('pmtiles') }} */ (/** @type {unknown} */ (window)).pmtiles;
    maplibregl.addProtocol('pmtiles', new Protocol().tile);
    return maplibregl;
  })());
}
/** @param {string} src */
function classicScript(src) {
  return new Promise((resolve, reject) =>
    document.head.append(Object.assign(document.createElement('script'), { src, onload: resolve, onerror: reject })),
  );
}
/** @param {string} href */
function styleSheet(href) {
  return new Promise((resolve, reject) =>
    document.head.prepend(
      Object.assign(document.createElement('link'), { rel: 'stylesheet', href, onload: resolve, onerror: reject }),
    ),
  );
}

/**
 * Returns a colour of the style sheet by the name of its property.
 * @param {string} name
 */
export const color = (name) => {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/**
 * Meridians and parallels of what the map shows, closer together the closer it is.
 * @param {number} zoom
 * @param {Bounds} bounds
 * @returns {import('geojson').FeatureCollection}
 */
export function graticule(zoom, [[west, south], [east, north]]) {
  const step =
    /** @type {Place[]} */ ([
      [3, 30],
      [5, 10],
      [6, 5],
      [7.5, 2],
      [9, 1],
      [10.5, 0.25],
    ]).find(([least]) => zoom < least)?.[1] ?? 0.05;
  /**
   * @param {Place[]} coordinates
   * @returns {import('geojson').Feature}
   */
  const line = (coordinates) => ({ type: 'Feature', properties: {}, geometry: { type: 'LineString', coordinates } });
  const [low, high] = [Math.max(-85, south - step), Math.min(85, north + step)];
  /** @type {import('geojson').Feature[]} */
  const features = [];
  for (let lon = Math.floor(west / step) * step; lon <= east; lon += step)
    features.push(
      line([
        [lon, low],
        [lon, high],
      ]),
    );
  for (let lat = Math.ceil(low / step) * step; lat <= high; lat += step)
    features.push(
      line([
        [west, lat],
        [east, lat],
      ]),
    );
  return { type: 'FeatureCollection', features };
}

/**
 * A layer of names of places.
 * @param {string} id
 * @param {number} minzoom
 * @param {number} size in pixels
 * @param {{ filter: import('maplibre-gl').FilterSpecification, opacity: number }} text
 * @returns {import('maplibre-gl').SymbolLayerSpecification}
 */
export const places = (id, minzoom, size, text) => ({
  id,
  type: 'symbol',
  source: 'earth',
  'source-layer': 'places',
  minzoom,
  filter: text.filter,
  layout: {
    'text-field': ['get', 'name'],
    'text-font': ['sans-serif'],
    'text-size': size,
    'text-padding': 6,
    'text-variable-anchor': ['top', 'bottom', 'left', 'right'],
    'text-radial-offset': 0.4,
    'symbol-sort-key': ['get', 'rank'],
  },
  paint: {
    'text-color': color('--ink'),
    'text-halo-color': color('--land'),
    'text-halo-width': 1.4,
    'text-opacity': text.opacity,
  },
});
