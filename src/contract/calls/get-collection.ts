import { stacCollection, stacPaths } from '../stac/objects.ts';
import { readNode, type CatalogNode } from '../stac/read-catalog.ts';
import { defineCall } from './define-call.ts';
import { ofCatalog } from './errors.ts';

/** Input of `getCollection` (spec 4.1). */
export type GetCollectionInput = { collectionId: string };

/** GET /public/stac/collections/{collectionId} (spec 4.1). */
export const getCollection = defineCall<GetCollectionInput, CatalogNode>()({
  endpoint: 'stac.browse',
  group: 'Catalog',
  section: '4.1',
  summary: 'Collection',
  description: 'One collection: its extent in space and time, its licence, and the link to its items.',
  method: 'GET',
  path: stacPaths.collection,
  response: stacCollection,
  answerFields: ['id', 'title', 'description', 'links'],
  errors: { ...ofCatalog, 404: null },
  decode: readNode,
});
