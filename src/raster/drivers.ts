/**
 * Raster drivers that read the one file they are given and nothing it names. VRT, raw-with-header formats and
 * HFA are left out because what is in the file decides which other files are read. netCDF reads what lies in
 * an HDF5 file, which may name others: only confined (`open-raster.ts`).
 */
export const rasterDrivers = ['GTiff', 'JP2OpenJPEG', 'PNG', 'JPEG', 'netCDF', 'AAIGrid', 'DTED', 'SRTMHGT'] as const;

/** Vector drivers that read the one file they are given. */
export const vectorDrivers = ['GeoJSON', 'GPKG', 'FlatGeobuf', 'KML', 'GML', 'CSV', 'ESRI Shapefile'] as const;

/** What the kit's own code works with, never on a foreign file. */
const ownDrivers = ['COG', 'MEM', 'Memory', 'VRT'] as const;

/** Every other driver is taken out of GDAL in a child process (`GDAL_SKIP`): whatever a file brings it to open, it has nothing to open it with. */
export const keptDrivers: ReadonlySet<string> = new Set([...rasterDrivers, ...vectorDrivers, ...ownDrivers]);
