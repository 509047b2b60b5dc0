import * as z from 'zod';
import {
  mediaTypes,
  stacCatalog,
  stacCollection,
  itemsPage,
  searchPage,
  stacLink,
  stacPaths,
  stacSortables,
} from '../stac/objects.ts';
import { itemsQuery, searchQuery } from '../stac/search-request.ts';
import type { CallFacts } from './define-call.ts';
import { ofCatalog } from './errors.ts';

const browse = { endpoint: 'stac.browse', group: 'Catalog', method: 'GET' } as const;

/** Calls of the catalog that the kit's client does not make: the root, the list of items, and those for standard STAC clients (sections 4.1 and 9). */
export const catalogForClients = {
  getRootCatalog: {
    ...browse,
    section: '4.1',
    summary: 'Root catalog',
    description: 'The root of the hierarchy of catalogs. Start here, and follow the links with `rel: child`.',
    path: `${stacPaths.root}/`,
    response: stacCatalog,
    errors: ofCatalog,
  },
  getItems: {
    ...browse,
    section: '4.1',
    summary: 'Items of a collection',
    description:
      'The items of one collection, newest first, page by page. `next` among the links leads to the next page.',
    path: stacPaths.items,
    query: itemsQuery,
    response: itemsPage,
    mediaType: mediaTypes.geojson,
    errors: { ...ofCatalog, 400: null, 404: null, 503: null },
  },
  getSearch: {
    ...browse,
    endpoint: 'stac.search',
    section: '9',
    summary: 'Items that match, for standard clients',
    description: 'The same search as by POST, with its parameters in the query, for standard STAC clients.',
    path: stacPaths.search,
    query: searchQuery,
    response: searchPage,
    mediaType: mediaTypes.geojson,
    errors: { ...ofCatalog, 400: null, 503: null },
  },
  getCollections: {
    ...browse,
    section: '9',
    summary: 'All collections, for standard clients',
    description: 'Every collection of the catalog in one list, for standard STAC clients.',
    path: stacPaths.collections,
    response: z.object({ collections: z.array(stacCollection), links: z.array(stacLink) }),
    errors: ofCatalog,
  },
  getConformance: {
    ...browse,
    section: '9',
    summary: 'Conformance classes',
    description: 'The classes of STAC and OGC standards that the catalog conforms to.',
    path: stacPaths.conformance,
    response: z.object({ conformsTo: z.array(z.string()) }),
    errors: ofCatalog,
  },
  getSortables: {
    ...browse,
    section: '9',
    summary: 'Properties by which items can be sorted',
    description: 'A JSON Schema whose properties are the names that `sortby` accepts.',
    path: stacPaths.sortables,
    response: stacSortables,
    mediaType: 'application/schema+json',
    errors: ofCatalog,
  },
  getApi: {
    ...browse,
    section: '9',
    summary: 'OpenAPI description of the catalog',
    description: 'The part of this document that is about the catalog, for standard STAC clients.',
    path: stacPaths.api,
    mediaType: mediaTypes.openapi,
    errors: ofCatalog,
  },
} as const satisfies Readonly<Record<string, CallFacts>>;
