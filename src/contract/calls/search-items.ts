import { mediaTypes, searchPage, stacPaths } from '../stac/objects.ts';
import { readItems, type CatalogItems } from '../stac/read-catalog.ts';
import { strictSearchRequest } from '../stac/search-request.ts';
import { defineCall } from './define-call.ts';
import { ofBody, ofCatalog } from './errors.ts';

/** Input of `searchItems` (spec 4.2). */
export interface SearchItemsInput {
  /** [west, south, east, north]. */
  readonly bbox: readonly number[];
  readonly collections: readonly string[];
  /** `<start>/<end>`. */
  readonly datetime: string;
  readonly limit?: number;
  readonly offset?: number;
  readonly sortby?: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
}

/** POST /public/stac/search (spec 4.2), by the fields that the spec shows. */
export const searchItems = defineCall<SearchItemsInput, CatalogItems>()({
  endpoint: 'stac.search',
  group: 'Catalog',
  section: '4.2',
  summary: 'Items that match',
  description:
    'Finds items by box, collections and time, and optionally by geometry, identifiers or a CQL2 filter. `next` among the links of the answer leads to the next page.',
  method: 'POST',
  path: stacPaths.search,
  request: strictSearchRequest,
  response: searchPage,
  mediaType: mediaTypes.geojson,
  bodyFields: ['bbox', 'collections', 'datetime', 'limit', 'offset', 'sortby'],
  answerFields: ['features', 'numberMatched'],
  errors: { ...ofCatalog, ...ofBody, 503: null },
  example: {
    bbox: [-35.1, -8.2, -34.8, -7.9],
    collections: ['olinda-coast'],
    datetime: '2002-01-01T00:00:00Z/2002-12-31T23:59:59Z',
    limit: 10,
  },
  encode: (input) => ({
    method: 'POST',
    path: stacPaths.search,
    headers: { accept: 'application/geo+json' },
    body: { kind: 'json', value: input },
  }),
  decode: readItems,
});
