import * as z from 'zod';
import {
  apiKeyHeader,
  interfaceCalls,
  lenientSearchRequest,
  mediaTypes,
  stacPaths,
  strictSearchRequest,
  type CallFacts,
} from '../../contract/index.ts';

type Json = Readonly<Record<string, unknown>>;

/** OpenAPI 3.0 description of the catalog (the advertised class `oas30`), made of the rows of its calls. */
export function openApiDocument(serverUrl: string, { isStrict }: { readonly isStrict: boolean }): Json {
  const error = (status: string) => [status, { $ref: '#/components/responses/Error' }] as const;
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operationId, row] of Object.entries(interfaceCalls)) {
    if (row.group !== 'Catalog') continue;
    const path = row.path.replace(/:([A-Za-z]+)/g, '{$1}');
    const type = row.mediaType ?? mediaTypes.json;
    const request = row.path === stacPaths.search && !isStrict ? lenientSearchRequest : strictSearchRequest;
    paths[path] = {
      ...paths[path],
      [row.method.toLowerCase()]: {
        operationId,
        summary: row.summary,
        description: row.description,
        parameters: [...pathParameters(row), ...queryParameters(row)],
        ...(row.request && {
          requestBody: { required: true, content: { [mediaTypes.json]: { schema: jsonSchema(request) } } },
        }),
        responses: {
          200: { description: row.summary, content: { [type]: { schema: { type: 'object' } } } },
          ...Object.fromEntries(Object.keys(row.errors).map(error)),
        },
      },
    };
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Sandbox STAC catalog',
      version: '1.0.0',
      description: 'Catalog browsing and item search of the geospatial platform, as the sandbox serves it.',
    },
    servers: [{ url: serverUrl }],
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: apiKeyHeader } },
      responses: {
        Error: {
          description: 'What was wrong',
          content: {
            [mediaTypes.json]: {
              schema: {
                type: 'object',
                required: ['error', 'code', 'requestId'],
                properties: { error: { type: 'string' }, code: { type: 'string' }, requestId: { type: 'string' } },
              },
            },
          },
        },
      },
    },
  };
}

function jsonSchema(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any' });
}

function pathParameters({ path }: CallFacts): Json[] {
  return [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters({ query }: CallFacts): Json[] {
  // The schema of an object has these.
  const { properties = {} } = (query ? jsonSchema(query) : {}) as { properties?: Readonly<Record<string, Json>> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
}
