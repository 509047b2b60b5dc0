import { mediaTypes, stacItem, stacPaths } from '../stac/objects.ts';
import { readItem, type CatalogItem } from '../stac/read-catalog.ts';
import { fillPath } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofCatalog } from './errors.ts';

/** Input of `getItem` (spec 4.1). */
export type GetItemInput = { collectionId: string; itemId: string };

/** GET /public/stac/collections/{collectionId}/items/{id} (spec 4.1). */
export const getItem = defineCall<GetItemInput, CatalogItem>()({
  endpoint: 'stac.browse',
  group: 'Catalog',
  section: '4.1',
  summary: 'Item, by id or title',
  description:
    'One item: footprint, time, properties, and temporary links to its data and previews, which need no key for 24 hours.',
  method: 'GET',
  path: stacPaths.item,
  response: stacItem,
  mediaType: mediaTypes.geojson,
  answerFields: ['id', 'collection', 'title', 'bbox', 'geometry'],
  errors: { ...ofCatalog, 404: null },
  encode: ({ collectionId, itemId }) => ({
    method: 'GET',
    path: fillPath(stacPaths.item, { collectionId, id: itemId }),
  }),
  decode: readItem,
});
