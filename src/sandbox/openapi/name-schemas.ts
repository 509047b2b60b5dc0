import {
  inferenceStatuses,
  inferenceTypes,
  limits,
  operationStatuses,
  pageLimits,
  sourceTypes,
  fileStatuses,
} from '../../contract/index.ts';
import { isRecord } from '../../files/index.ts';

type Json = Record<string, unknown>;

/** Enumerations of the interface, by the names of their schemas. */
const words: Readonly<Record<string, readonly string[]>> = {
  SourceType: sourceTypes,
  FileStatus: fileStatuses,
  OperationStatus: operationStatuses,
  InferenceStatus: inferenceStatuses,
  ModelType: inferenceTypes,
};

/** Numbers that forms and URLs send as text, with their ranges. */
const numbers: Readonly<Record<string, readonly [lowest: number, highest?: number]>> = {
  partNumber: [limits.firstPartNumber, limits.maxPartNumber],
  limit: [1, pageLimits.max],
  offset: [0],
  width: [1, limits.previewSidePixels],
  height: [1, limits.previewSidePixels],
  expires: [0],
};

/** Flags that addresses send as text. */
const flags: ReadonlySet<string> = new Set(['useDefaultContentType']);

const upperFirst = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/**
 * Gives each body and each enumeration a named schema, so that a generated client has a type for it. Identical schemas share one name.
 * Numbers in forms and URLs are integers, those beyond 32 bits `int64`, and files are binary.
 */
export function nameSchemas(document: { paths?: unknown; components?: unknown }): void {
  const schemas = (isRecord(document.components) ? document.components['schemas'] : undefined) as Json;
  const names = new Map(Object.entries(schemas).map(([name, schema]) => [JSON.stringify(schema), name]));
  for (const [name, values] of Object.entries(words)) schemas[name] = { type: 'string', enum: [...values] };
  for (const [name, schema] of Object.entries(schemas)) if (!(name in words)) nameWords(schema);
  nameWords(document.paths);

  for (const operation of operationsOf(document.paths)) {
    const id = upperFirst(String(operation['operationId']));
    for (const parameter of asList(operation['parameters'])) asTyped(String(parameter['name']), parameter, 'schema');
    const { requestBody, responses } = operation;
    if (isRecord(requestBody)) nameBodies(requestBody['content'], `${id}Request`);
    if (isRecord(responses))
      for (const [status, response] of Object.entries(responses))
        if (status.startsWith('2') && isRecord(response)) nameBodies(response['content'], `${id}Answer`);
  }
  nameWidths(document);

  function nameBodies(content: unknown, name: string): void {
    for (const [mediaType, body] of Object.entries(isRecord(content) ? content : {})) {
      if (!isRecord(body) || !isRecord(body['schema']) || typeof body['schema']['$ref'] === 'string') continue;
      const { schema } = body;
      if (mediaType !== 'application/json' && mediaType !== 'application/geo+json' && !isForm(mediaType)) continue;
      if (isForm(mediaType)) asForm(schema, body['example']);
      const text = JSON.stringify(schema);
      const known = names.get(text) ?? name;
      names.set(text, known);
      schemas[known] = schema;
      body['schema'] = reference(known);
    }
  }
}

const isForm = (mediaType: string) => /^multipart\/form-data$|x-www-form-urlencoded$/.test(mediaType);

/** Converts the numbers in `example`, too. */
function asForm(schema: Json, example: unknown): void {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  for (const [name, field] of Object.entries(properties)) {
    asTyped(name, properties, name);
    if (name in numbers && isRecord(example)) example[name] = Number(example[name]);
    if (isRecord(field) && field['contentMediaType'] === 'application/octet-stream') field['format'] = 'binary';
  }
}

/** Replaces a string schema by that of an integer or a boolean if the field is a known number or flag. */
function asTyped(name: string, holder: Json, key: string): void {
  const schema = holder[key];
  const range = numbers[name];
  if (!isRecord(schema) || schema['type'] !== 'string') return;
  const { description } = schema;
  if (flags.has(name)) holder[key] = { type: 'boolean', ...(description !== undefined && { description }) };
  if (!range) return;
  const [minimum, maximum] = range;
  holder[key] = {
    ...{ type: 'integer', minimum },
    ...(maximum !== undefined && { maximum }),
    ...(description !== undefined && { description }),
  };
}

/** Replaces each enumeration by a reference, and adds `items` to tuples, because OpenAPI linters require it. */
function nameWords(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(nameWords);
  if (!isRecord(value)) return;
  const { enum: values, prefixItems } = value;
  if (Array.isArray(values)) {
    const known = Object.entries(words).find(([, list]) => JSON.stringify(list) === JSON.stringify(values));
    if (known) {
      delete value['enum'];
      delete value['type'];
      Object.assign(value, reference(known[0]));
    }
  }
  if (Array.isArray(prefixItems) && (value['items'] === undefined || value['items'] === false))
    value['items'] = prefixItems[0] as unknown;
  Object.values(value).forEach(nameWords);
}

const maxInt32 = 2 ** 31 - 1;

/** Gives integers beyond 32 bits the format `int64`, because generators take an integer without a format for 32 bits. */
function nameWidths(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(nameWidths);
  if (!isRecord(value)) return;
  const { type, maximum } = value;
  const isInteger = type === 'integer' || (Array.isArray(type) && type.includes('integer'));
  if (isInteger && (typeof maximum !== 'number' || maximum > maxInt32)) value['format'] = 'int64';
  Object.values(value).forEach(nameWidths);
}

const asList = (value: unknown) => (Array.isArray(value) ? value.filter(isRecord) : []);

const operationsOf = (paths: unknown): Json[] =>
  Object.values(isRecord(paths) ? paths : {}).flatMap((path) =>
    Object.values(isRecord(path) ? path : {}).filter(
      (operation): operation is Json => isRecord(operation) && typeof operation['operationId'] === 'string',
    ),
  );
