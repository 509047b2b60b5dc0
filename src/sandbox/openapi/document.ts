import * as z from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { apiKeyHeader, errorBody } from '../../contract/index.ts';
import { isRecord } from '../../files/index.ts';
import { controlCalls } from './control-calls.ts';
import { describeFields, fieldsIn, type Descriptions, type DocumentedField } from './describe-fields.ts';
import { descriptions, tagDescriptions } from './descriptions.ts';
import type { DocumentedCall } from './documented-call.ts';
import { nameSchemas } from './name-schemas.ts';
import { platformCalls } from './platform-calls.ts';

const json = 'application/json';
const error = errorBody.meta({ id: 'Error' });

const reasons: Readonly<Record<number, string>> = {
  200: 'Success',
  201: 'Created',
  204: 'No content',
  400: 'A value is missing, malformed or invalid',
  401: 'The key is missing or unknown',
  403: 'Authentication failed, permission missing, or not from here',
  404: 'Not found',
  409: 'Conflict: another state is needed',
  413: 'Too large',
  415: 'Unsupported content type',
  416: 'A range outside of the file',
  421: 'Not a host name of the sandbox',
  500: 'Server-side failure',
  503: 'Too much is asked at once, or another process uses the database',
  507: 'The disk is full',
};

export const documentedCalls: readonly DocumentedCall[] = [...platformCalls, ...controlCalls];

/** Descriptions of fields: the general ones, and those in the rows of the calls. */
export const knownDescriptions: Descriptions = {
  ...descriptions,
  ...Object.fromEntries(
    documentedCalls.flatMap(({ id, descriptions: ofCall = {} }) =>
      Object.entries(ofCall).map(([path, text]) => [`${id}.${path}`, text]),
    ),
  ),
};

/** OpenAPI 3.1 of the whole sandbox, its schemas those that requests are checked by and clients read with. */
export function openApi31(serverUrl: string): ReturnType<typeof createDocument> {
  const document = describedDocument(serverUrl);
  nameSchemas(document);
  return document;
}

/** The document before schemas get names. The path of a field selects its description. */
export function describedDocument(serverUrl: string): ReturnType<typeof createDocument> {
  const paths: ZodOpenApiPathsObject = {};
  for (const call of documentedCalls) {
    const path = documentedPath(call.path);
    paths[path] = { ...paths[path], [call.method]: operationOf(call) };
  }
  const document = createDocument({
    openapi: '3.1.1',
    info: {
      title: 'Geospatial platform, as the sandbox serves it',
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The integration starter kit', url: 'https://example.org/marketplace-app-kit' },
      version: '1.0.0',
      description:
        "Catalog, search, files, inference and external apps by the service interface; what it leaves open, by the assumptions of docs/contract.md. The calls below /sandbox are the sandbox's own. Another method on one of these paths is answered with 405 and the header Allow, an unknown path with 404 (path_not_found).",
    },
    servers: [{ url: serverUrl }],
    tags: Object.entries(tagDescriptions).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: apiKeyHeader,
          description: 'Required by every call of the platform (section 5)',
        },
        bearer: { type: 'http', scheme: 'bearer', description: 'The key, at the models endpoint only (section 5)' },
        adminKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-ADMIN-KEY',
          description: 'Required if SANDBOX_ADMIN_KEY is set',
        },
      },
    },
  });
  withoutForbidden(document);
  describeFields(fieldsOf(document), knownDescriptions);
  return document;
}

/** The fields of all schemas, and the parameters of all calls, of a document. */
export function fieldsOf(document: ReturnType<typeof createDocument>): DocumentedField[] {
  const ofSchemas = Object.entries(document.components?.schemas ?? {}).flatMap(([name, schema]) =>
    fieldsIn(schema, [name]),
  );
  const ofCalls = Object.values(document.paths ?? {}).flatMap((item) =>
    Object.values(item as Record<string, unknown>).flatMap((call) => {
      if (!isRecord(call) || typeof call['operationId'] !== 'string') return [];
      const { operationId, parameters, requestBody, responses } = call;
      const given = (Array.isArray(parameters) ? parameters : []).filter(isRecord);
      return [
        ...given.map((schema) => ({ path: [operationId, String(schema['name'])], schema })),
        ...fieldsIn({ requestBody, responses }, [operationId]),
      ];
    }),
  );
  return [...ofSchemas, ...ofCalls];
}

/** Takes out fields and parameters that no value may have: a request with one is refused, and a client is offered none. */
function withoutForbidden(value: unknown): void {
  if (!isRecord(value)) return;
  const isForbidden = (schema: unknown) => isRecord(schema) && isRecord(schema['not']);
  for (const [name, member] of Object.entries(value)) {
    if (name === 'properties' && isRecord(member))
      for (const field of Object.keys(member)) if (isForbidden(member[field])) delete member[field];
    if (name === 'parameters' && Array.isArray(member))
      value[name] = member.filter((parameter: unknown) => !(isRecord(parameter) && isForbidden(parameter['schema'])));
    for (const below of Array.isArray(member) ? member : [member]) withoutForbidden(below);
  }
}

let own: ReturnType<typeof openApi31> | undefined;

/** Returns the document with a relative server address. All sandboxes of a process share it, because building it takes 0.1 s of CPU. */
export const ownOpenApi = (): ReturnType<typeof openApi31> => (own ??= openApi31('/'));

/** `/a/:id` as `/a/{id}`. */
function documentedPath(path: string): string {
  return path.replace(/:([A-Za-z]+)/g, '{$1}');
}

function operationOf(call: DocumentedCall): ZodOpenApiOperationObject {
  const names = [...call.path.matchAll(/:([A-Za-z]+)/g)].map(([, name = '']) => name);
  return {
    operationId: call.id,
    summary: call.summary,
    tags: [call.tag],
    description: call.description,
    security: securityOf(call),
    requestParams: {
      ...(names.length > 0 ? { path: z.object(Object.fromEntries(names.map((name) => [name, z.string()]))) } : {}),
      ...(call.query ? { query: call.query } : {}),
      ...(call.headers ? { header: call.headers } : {}),
    },
    ...(call.json || call.form
      ? {
          requestBody: {
            required: !(call.json ?? call.form?.fields)?.safeParse({}).success || call.form?.file !== undefined,
            content: bodyOf(call),
          },
        }
      : {}),
    responses: responsesOf(call),
  };
}

function securityOf(call: DocumentedCall): Record<string, string[]>[] {
  if (call.isSigned) return [];
  if (call.tag === 'Sandbox') return [{}, { adminKey: [] }];
  return call.takesBearer ? [{ apiKey: [] }, { bearer: [] }] : [{ apiKey: [] }];
}

function bodyOf({
  json: body,
  form,
  example,
}: DocumentedCall): Record<string, { schema: z.ZodType; example?: unknown }> {
  // The file in an example is a placeholder.
  const whole = form?.file !== undefined && isRecord(example) ? { ...example, [form.file]: '...' } : example;
  const shown = whole === undefined ? {} : { example: whole };
  if (body) return { [json]: { schema: body, ...shown } };
  if (!form) return {};
  const { fields, file } = form;
  if (!file)
    return {
      'application/x-www-form-urlencoded': { schema: fields, ...shown },
      'multipart/form-data': { schema: fields, ...shown },
    };
  const content = z.string().meta({ contentMediaType: 'application/octet-stream', type: 'string' });
  return { 'multipart/form-data': { schema: fields.extend({ [file]: content }), ...shown } };
}

function responsesOf(call: DocumentedCall): ZodOpenApiResponsesObject {
  const { success = 200, mediaType = json, otherMediaTypes = [] } = call;
  const others = Object.fromEntries(otherMediaTypes.map((type) => [type, { schema: z.string() }]));
  const answer = success === 204 ? {} : { content: { [mediaType]: { schema: call.response ?? z.any() }, ...others } };
  const errors = new Set(call.errors);
  // A rate limit can be set on every call of the platform.
  if (call.tag !== 'Sandbox') errors.add(429);
  // Another process can hold the database while a call needs it.
  if (errors.has(500)) errors.add(503);
  if (call.takesRange) errors.add(416);
  // A segment of the path may not be percent-encoded UTF-8.
  if (call.path.includes(':')) errors.add(400);
  const part = call.takesRange ? { 206: { description: 'The part that Range names', ...answer } } : {};
  const failures = [...errors].map(
    (status) => [status, { description: reasons[status] ?? 'Error', content: { [json]: { schema: error } } }] as const,
  );
  return {
    [success]: { description: reasons[success] ?? 'Success', ...answer },
    ...part,
    ...Object.fromEntries(failures),
  };
}
