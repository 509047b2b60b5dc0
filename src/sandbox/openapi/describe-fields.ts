import { isRecord } from '../../files/index.ts';

/** Descriptions by the end of the path of a field. */
export type Descriptions = Readonly<Record<string, string>>;

/** Members of a schema or a call that add nothing to the path of a field. */
const wrappers: ReadonlySet<string> = new Set([
  'properties',
  'items',
  'schema',
  'content',
  'application/json',
  'application/geo+json',
  'allOf',
  'anyOf',
  'oneOf',
  'responses',
  '200',
  '201',
]);

/** Fields of a document, with the path that finds each one's description. */
export interface DocumentedField {
  /** Names from the schema or the call to the field. */
  readonly path: readonly string[];
  readonly schema: Record<string, unknown>;
}

/** The longest end of a path that has a description, or null. */
export function keyOf(path: readonly string[], known: Descriptions): string | null {
  for (let from = 0; from < path.length; from++) {
    const key = path.slice(from).join('.');
    if (Object.hasOwn(known, key)) return key;
  }
  return null;
}

/** Fields of all schemas below a value. A schema that stands elsewhere by its name is looked at there. */
export function fieldsIn(value: unknown, path: readonly string[]): DocumentedField[] {
  if (Array.isArray(value)) return value.flatMap((element) => fieldsIn(element, path));
  if (!isRecord(value)) return [];
  const own = isSchemaOfObject(value)
    ? Object.entries(value['properties']).flatMap(([name, schema]) =>
        isRecord(schema) ? [{ path: [...path, name], schema }] : [],
      )
    : [];
  const below = Object.entries(value).flatMap(([name, member]) => {
    const isSchemas = name === 'properties' && isSchemaOfObject(value);
    if (isSchemas && isRecord(member))
      return Object.entries(member).flatMap(([field, schema]) => fieldsIn(schema, [...path, field]));
    return fieldsIn(member, wrappers.has(name) ? path : name === 'requestBody' ? [...path, 'in'] : [...path, name]);
  });
  return [...own, ...below];
}

/** True for the schema of an object, and not for an object that has a field of that name. */
const isSchemaOfObject = (
  value: Record<string, unknown>,
): value is Record<string, unknown> & { properties: Record<string, unknown> } =>
  isRecord(value['properties']) && (value['type'] === 'object' || Array.isArray(value['required']));

/** Describes each field. A schema that stands elsewhere by its name (`$ref`) keeps its own description beside it. */
export function describeFields(fields: readonly DocumentedField[], known: Descriptions): void {
  for (const { path, schema } of fields) {
    const key = keyOf(path, known);
    if (key !== null && schema['description'] === undefined) schema['description'] = known[key];
  }
}
