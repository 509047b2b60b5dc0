import * as z from 'zod';
import { itemsQuery, lenientSearchRequest, mediaTypes, searchQuery, stacPaths } from '../../contract/index.ts';

type Json = Readonly<Record<string, unknown>>;

/** OpenAPI 3.0 description of the catalog (the advertised class `oas30`), its schemas made from those that the server checks by. */
export function openApiDocument(serverUrl: string): Json {
  const response = (description: string, type: string, schema: Json = { type: 'object' }) => ({
    description,
    content: { [type]: { schema } },
  });
  const errors = {
    '400': { $ref: '#/components/responses/Error' },
    '401': { $ref: '#/components/responses/Error' },
    '404': { $ref: '#/components/responses/Error' },
  };
  const get = (operationId: string, summary: string, type: string, path: string, query: z.ZodObject | null = null) => ({
    get: {
      operationId,
      summary,
      parameters: [...pathParameters(path), ...(query ? queryParameters(query) : [])],
      responses: { '200': response(summary, type), ...errors },
    },
  });
  return {
    openapi: '3.0.3',
    info: {
      title: 'Sandbox STAC catalog',
      version: '1.0.0',
      description: 'Catalog browsing and item search of the geospatial platform, as the sandbox serves it.',
    },
    servers: [{ url: serverUrl }],
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(
      Object.entries({
        [`${stacPaths.root}/`]: get('getRootCatalog', 'Root catalog', mediaTypes.json, stacPaths.root),
        [stacPaths.catalog]: get('getCatalog', 'Catalog', mediaTypes.json, stacPaths.catalog),
        [stacPaths.conformance]: get('getConformance', 'Conformance classes', mediaTypes.json, stacPaths.conformance),
        [stacPaths.sortables]: get(
          'getSortables',
          'What items can be sorted by',
          'application/schema+json',
          stacPaths.sortables,
        ),
        [stacPaths.collections]: get('getCollections', 'All collections', mediaTypes.json, stacPaths.collections),
        [stacPaths.collection]: get('getCollection', 'Collection', mediaTypes.json, stacPaths.collection),
        [stacPaths.items]: get('getItems', 'Items of a collection', mediaTypes.geojson, stacPaths.items, itemsQuery),
        [stacPaths.item]: get('getItem', 'Item, by id or title', mediaTypes.geojson, stacPaths.item),
        [stacPaths.search]: {
          ...get('getSearch', 'Items that match', mediaTypes.geojson, stacPaths.search, searchQuery),
          post: {
            operationId: 'postSearch',
            summary: 'Items that match',
            requestBody: {
              required: true,
              content: { [mediaTypes.json]: { schema: jsonSchema(lenientSearchRequest) } },
            },
            responses: { '200': response('Items that match', mediaTypes.geojson), ...errors },
          },
        },
      }).map(([path, operations]) => [path.replace(/:([A-Za-z]+)/g, '{$1}'), operations]),
    ),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' } },
      responses: {
        Error: response('What was wrong', mediaTypes.json, {
          type: 'object',
          required: ['error', 'code', 'requestId'],
          properties: { error: { type: 'string' }, code: { type: 'string' }, requestId: { type: 'string' } },
        }),
      },
    },
  };
}

function jsonSchema(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any' });
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters(query: z.ZodObject): Json[] {
  // The schema of an object has these.
  const { properties = {} } = jsonSchema(query) as { properties?: Readonly<Record<string, Json>> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
}
