import type { Exchange } from './target.ts';

/** The parts of an OpenAPI document that coverage asks for. */
interface ApiDocument {
  readonly paths?: Readonly<Record<string, unknown>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

export interface Share {
  readonly seen: number;
  readonly all: number;
  /** Names of unseen entries. */
  readonly missing: readonly string[];
}

export interface Coverage {
  readonly operations: Share;
  readonly statuses: Share;
  /** First-level fields of successful responses. */
  readonly fields: Share;
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly pattern: RegExp;
  readonly statuses: readonly string[];
  readonly fields: readonly string[];
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  // An object has fields by name.
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};

/** Returns the share of the platform's documented calls that was seen. The sandbox's own calls do not count. */
export function coverageOf(exchanges: readonly Exchange[], document: ApiDocument): Coverage {
  const operations = operationsOf(document).map((operation) => ({
    ...operation,
    seen: exchanges.filter((made) => isOf(operation, made)),
  }));
  type Seen = (typeof operations)[number];
  const share = (names: (call: Seen) => readonly string[], isSeen: (call: Seen, name: string) => boolean): Share => {
    const all = operations.flatMap((operation) => names(operation).map((name) => [operation, name] as const));
    const missing = all
      .filter(([call, name]) => !isSeen(call, name))
      .map(([call, name]) => `${call.id} ${name}`.trim());
    return { seen: all.length - missing.length, all: all.length, missing };
  };
  return {
    operations: share(
      () => [''],
      ({ seen }) => seen.length > 0,
    ),
    statuses: share(
      (call) => call.statuses,
      ({ seen }, status) => seen.some(({ facts }) => facts['status'] === status),
    ),
    fields: share(
      (call) => call.fields,
      ({ seen }, field) => seen.some(({ facts }) => `body.${field}` in facts || `body[].${field}` in facts),
    ),
  };
}

/** A profile may have its calls on other paths. */
const isOf = ({ id, method, pattern }: Operation, made: Exchange) =>
  made.call !== null && made.method !== ''
    ? id === made.call
    : made.method.toLowerCase() === method &&
      pattern.test(made.path.replace(/^https?:\/\/[^/]+/, '').split('?')[0] ?? '');

function operationsOf(document: ApiDocument): Operation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    path.startsWith('/sandbox') || path === '/health'
      ? []
      : Object.entries(record(methods)).map(([method, operation]): Operation => {
          const { operationId, responses } = record(operation);
          const answers = record(responses);
          return {
            id: typeof operationId === 'string' ? operationId : `${method} ${path}`,
            method,
            pattern: new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')}$`),
            statuses: Object.keys(answers),
            fields: fieldsOf(answers['200'] ?? answers['201'], document),
          };
        }),
  );
}

function fieldsOf(response: unknown, document: ApiDocument): string[] {
  const [content] = Object.values(record(record(response)['content']));
  const schema = resolved(record(content)['schema'], document);
  const item = resolved(schema['items'], document);
  return Object.keys(record(schema['properties'] ?? item['properties']));
}

function resolved(schema: unknown, { components }: ApiDocument): Readonly<Record<string, unknown>> {
  const reference = record(schema)['$ref'];
  return typeof reference === 'string'
    ? record(components?.schemas?.[reference.split('/').at(-1) ?? ''])
    : record(schema);
}
