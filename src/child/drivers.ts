/**
 * Raster drivers that read the one file they are given and nothing it names. VRT is left out because what is in the
 * file decides which other files are read. netCDF reads what lies in an HDF5 file, which may name others: only
 * confined (`open-raster.ts`).
 */
const plainRasterDrivers = ['GTiff', 'JP2OpenJPEG', 'PNG', 'JPEG', 'netCDF', 'AAIGrid', 'DTED', 'SRTMHGT'] as const;

/** Their files may name others: read only where the child sees no other, and elsewhere taken out of GDAL. */
export const confinedRasterDrivers = ['NITF', 'HFA', 'ENVI'] as const;

/** Those that a file is tried with, in this order. */
export const rasterDrivers = [...plainRasterDrivers, ...confinedRasterDrivers] as const;

/** Vector drivers that read the one file they are given. */
export const vectorDrivers = ['GeoJSON', 'GPKG', 'FlatGeobuf', 'KML', 'GML', 'CSV', 'ESRI Shapefile'] as const;

/** Drivers for the kit's own code, never for a foreign file. */
const ownDrivers = ['COG', 'MEM', 'Memory', 'VRT'] as const;

/** Every other driver is taken out of GDAL in a child process (`GDAL_SKIP`): whatever a file brings it to open, it has nothing to open it with. */
export function keptDrivers({ confined }: { readonly confined: boolean }): ReadonlySet<string> {
  const rasters: readonly string[] = confined ? rasterDrivers : plainRasterDrivers;
  return new Set([...rasters, ...vectorDrivers, ...ownDrivers]);
}
