/** The one driver that a file of this ending is opened with: none of them opens what the file names. */
export const vectorDriverOf: Readonly<Record<string, string>> = {
  '.geojson': 'GeoJSON',
  '.json': 'GeoJSON',
  '.gpkg': 'GPKG',
  '.fgb': 'FlatGeobuf',
  '.csv': 'CSV',
};

/** Endings of files that are taken for features; whether they are, opening them tells. */
export const vectorExtensions: ReadonlySet<string> = new Set(Object.keys(vectorDriverOf));
