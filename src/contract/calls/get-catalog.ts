import { stacCatalog, stacPaths } from '../stac/objects.ts';
import { readNode, type CatalogNode } from '../stac/read-catalog.ts';
import { fillPath } from '../wire.ts';
import { defineCall } from './define-call.ts';
import { ofCatalog } from './errors.ts';

/** Input of `getCatalog` (spec 4.1). Null: the root. */
export type GetCatalogInput = { catalogId: string | null };

/** GET /public/stac/ (null: the root) and /public/stac/catalogs/{catalogId} (spec 4.1). */
export const getCatalog = defineCall<GetCatalogInput, CatalogNode>()({
  endpoint: 'stac.browse',
  group: 'Catalog',
  section: '4.1',
  summary: 'Catalog',
  description:
    'One catalog of the hierarchy. Its links with `rel: child` lead to the catalogs and collections below it.',
  method: 'GET',
  path: stacPaths.catalog,
  response: stacCatalog,
  answerFields: ['id', 'title', 'description', 'links'],
  errors: { ...ofCatalog, 404: null },
  encode: ({ catalogId }) => ({
    method: 'GET',
    path: catalogId === null ? `${stacPaths.root}/` : fillPath(stacPaths.catalog, { catalogId }),
  }),
  decode: readNode,
});
