/** Metadata of a raster or a band in a domain. Default: the main domain. */
export const metadataOf = (from: { getMetadata(domain?: string): unknown }, domain?: string): Record<string, string> =>
  // GDAL's metadata are texts by name; the type of gdal-async says less.
  from.getMetadata(domain) as Record<string, string>;
