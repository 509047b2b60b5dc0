import { Router } from 'express';
import { apiKeyHeader, permissions } from '../../contract/index.ts';
import type { ApiKeys } from '../identity/api-keys.ts';
import { ownOpenApi } from '../openapi/document.ts';
import type { RenderPage } from './page.ts';

export interface ApiPageOptions {
  readonly keys: Pick<ApiKeys, 'create'>;
  readonly publicUrl: () => string;
  readonly render: RenderPage;
}

/** Parts of JSON Schema that an example needs. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly description?: string;
}

interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema?: Schema;
    readonly description?: string;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
  readonly responses?: Readonly<
    Record<
      string,
      { readonly description?: string; readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }
    >
  >;
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Values that are there in the demo world, by the names that the interface gives them. */
const known: Readonly<Record<string, unknown>> = {
  catalogId: 'platform',
  collectionId: 'olinda-coast',
  collections: ['olinda-coast'],
  bbox: [-35, -8.1, -34.8, -7.9],
  datetime: '2002-01-01T00:00:00Z/2002-12-31T23:59:59Z',
  limit: 10,
  offset: 0,
  name: 'Vegetation index',
  description: 'What is done, for the one who approves it',
  fileName: 'result.tif',
  fileSize: 1024,
  partNumber: 1,
  sourceType: 'MULTISPECTRAL',
  advanceMs: 60_000,
  endpoint: 'upload.chunk',
  effect: { reset: true },
  launchUrl: 'http://127.0.0.1:3000/launch',
};

/** `/docs`: every call of the interface with an example that can be sent from here; described in full by `/openapi.json`. */
export function apiPage({ keys, publicUrl, render }: ApiPageOptions): Router {
  const router = Router();
  let groups: ReturnType<typeof groupsOf> | undefined;
  router.get('/docs', (_req, res) => {
    // The type of OpenAPI documents allows more than the kit's own has.
    groups ??= groupsOf(ownOpenApi() as unknown as ApiDocument);
    render(res, 'api', { groups, publicUrl: publicUrl(), keyHeader: apiKeyHeader });
  });
  router.post('/docs/key', (_req, res) => void res.status(201).json(keys.create(permissions)));
  return router;
}

function groupsOf({ paths, components }: ApiDocument) {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => callOf(path, method, operation, components.schemas)),
  );
  return [...Map.groupBy(calls, ({ tag }) => tag)].map(([tag, own]) => ({ tag, calls: own }));
}

function callOf(path: string, method: string, operation: Operation, schemas: Readonly<Record<string, Schema>>) {
  const [mediaType, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const isJson = mediaType === 'application/json';
  const example = (name: string, schema: Schema | undefined) => String(exampleOf(name, schema ?? {}, schemas, 0));
  const query = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query' && parameter.required === true)
    .map(({ name, schema }) => `${name}=${encodeURIComponent(example(name, schema))}`);
  const filled = path.replace(/\{([A-Za-z]+)\}/g, (whole, name: string) =>
    name === 'id' && path.includes('/items/')
      ? 'olinda-landsat7'
      : name in known
        ? encodeURIComponent(String(known[name]))
        : whole,
  );
  return {
    id: `${method}-${path.replace(/[^A-Za-z]+/g, '-')}`,
    method: method.toUpperCase(),
    path,
    address: filled + (query.length > 0 ? `?${query.join('&')}` : ''),
    tag: operation.tags?.[0] ?? 'Other',
    summary: operation.summary ?? '',
    section: operation.description ?? '',
    wantsKey: (operation.security ?? []).some((requirement) => 'apiKey' in requirement),
    parameters: (operation.parameters ?? []).map(({ name, in: where, required, schema, description }) => ({
      name,
      where,
      description: description ?? schema?.description ?? '',
      isRequired: required === true,
      type: typeOf(schema ?? {}),
    })),
    mediaType: mediaType ?? null,
    fields: fieldsOf(body?.schema, schemas),
    body: isJson && body?.schema ? JSON.stringify(exampleOf('', body.schema, schemas, 0), null, 2) : null,
    answers: Object.entries(operation.responses ?? {}).map(([status, { description, content }]) => {
      const schema = status.startsWith('2') ? content?.['application/json']?.schema : undefined;
      return {
        status,
        description: description ?? '',
        example: schema ? JSON.stringify(exampleOf('', schema, schemas, 0), null, 2) : null,
      };
    }),
  };
}

function resolved(schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (schemas[name] ?? {});
}

function fieldsOf(schema: Schema | undefined, schemas: Readonly<Record<string, Schema>>) {
  const { properties = {}, required = [] } = resolved(schema ?? {}, schemas);
  return Object.entries(properties).map(([name, field]) => ({
    name,
    type: typeOf(resolved(field, schemas)),
    description: field.description ?? resolved(field, schemas).description ?? '',
    isRequired: required.includes(name),
  }));
}

function typeOf({ type, enum: values, anyOf, oneOf }: Schema): string {
  if (values) return values.slice(0, 6).map(String).join(' | ') + (values.length > 6 ? ' | …' : '');
  return [type ?? (anyOf ?? oneOf)?.map(typeOf).join(' | ') ?? 'any'].flat().join(' | ');
}

/** Returns an example: the required fields, and those for which the demo world has a value. */
function exampleOf(name: string, given: Schema, schemas: Readonly<Record<string, Schema>>, depth: number): unknown {
  const schema = resolved(given, schemas);
  if (name in known) return known[name];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.anyOf ?? schema.oneOf)?.[0];
  if (choice) return exampleOf(name, choice, schemas, depth + 1);
  const type = [schema.type ?? 'string'].flat()[0];
  if (type === 'object') {
    const wanted = Object.entries(schema.properties ?? {}).filter(
      ([field]) => schema.required?.includes(field) || (depth === 0 && field in known),
    );
    return depth > 4
      ? {}
      : Object.fromEntries(wanted.map(([field, inner]) => [field, exampleOf(field, inner, schemas, depth + 1)]));
  }
  if (type === 'array') return schema.items && depth < 4 ? [exampleOf('', schema.items, schemas, depth + 1)] : [];
  if (type === 'number' || type === 'integer') return Math.max(0, schema.minimum ?? 1);
  return type === 'boolean' ? true : name === '' ? 'text' : `<${name}>`;
}
