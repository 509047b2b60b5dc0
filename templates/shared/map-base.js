// What every map stands on: the library, colours of the style sheet, the graticule, and names of places.
const vendor = '/assets/vendor';
let library = null;

/** MapLibre is large: it is fetched when the first map is made. */
export function loadLibrary() {
  return (library ??= (async () => {
    const [maplibregl] = await Promise.all([
      import(`${vendor}/maplibre-gl/maplibre-gl.mjs`),
      classicScript(`${vendor}/pmtiles/pmtiles.js`),
      styleSheet(`${vendor}/maplibre-gl/maplibre-gl.css`),
    ]);
    maplibregl.addProtocol('pmtiles', new window.pmtiles.Protocol().tile);
    return maplibregl;
  })());
}
function classicScript(src) {
  return new Promise((resolve, reject) =>
    document.head.append(Object.assign(document.createElement('script'), { src, onload: resolve, onerror: reject })),
  );
}
function styleSheet(href) {
  return new Promise((resolve, reject) =>
    document.head.prepend(
      Object.assign(document.createElement('link'), { rel: 'stylesheet', href, onload: resolve, onerror: reject }),
    ),
  );
}

export const color = (name) => {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/** Meridians and parallels where the map is, closer together the closer it is. */
export function graticule(zoom, [[west, south], [east, north]]) {
  const step =
    [
      [3, 30],
      [5, 10],
      [6, 5],
      [7.5, 2],
      [9, 1],
      [10.5, 0.25],
    ].find(([least]) => zoom < least)?.[1] ?? 0.05;
  const line = (coordinates) => ({ type: 'Feature', properties: {}, geometry: { type: 'LineString', coordinates } });
  const [low, high] = [Math.max(-85, south - step), Math.min(85, north + step)];
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
