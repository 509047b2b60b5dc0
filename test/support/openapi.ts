import type { RequestListener, ServerResponse } from 'node:http';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { documentedCalls, openApi31 } from '../../src/sandbox/openapi/document.ts';
import type { DocumentedCall } from '../../src/sandbox/openapi/documented-call.ts';

const document = openApi31('/');
// Formats are checked by the patterns that stand beside them.
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(document, 'openapi');

const validators = new Map<string, ValidateFunction>();
function validatorAt(pointer: string): ValidateFunction {
  const known = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
  validators.set(pointer, known);
  return known;
}

type Responses = Readonly<Record<string, { content?: Readonly<Record<string, unknown>> }>> | undefined;

const routes = documentedCalls.map((call) => ({
  call,
  isPlain: !call.path.includes(':'),
  pattern: new RegExp(`^${call.path.replace(/:[A-Za-z]+/g, '[^/]+').replace(/\/$/, '/?')}$`),
}));

export interface SeenAnswer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly mediaType: string;
  readonly body: string;
}

/** Part of an answer that the OpenAPI document does not describe; null if it describes everything. */
export function faultOfAnswer({ method, path, status, mediaType, body }: SeenAnswer): string | null {
  if (method === 'OPTIONS' || !/^\/(public|sandbox|health)/.test(path)) return null;
  const there = routes
    .filter(({ pattern }) => pattern.test(path))
    .sort((a, b) => Number(b.isPlain) - Number(a.isPlain));
  const call = there.find((route) => route.call.method === (method === 'HEAD' ? 'get' : method.toLowerCase()))?.call;
  const isInjected = path.startsWith('/public/external-app') && (status >= 500 || body.includes('"injected_fault"'));
  const isOfRouting = !call && (status === 404 || status === 405 || status === 403 || status === 401 || status === 421);
  if (isInjected || isOfRouting) return invalidBy('/components/schemas/Error', method, body);
  if (!call) return `${method} is not described`;
  return faultOfDescribed(call, { method, path, status, mediaType, body });
}

function faultOfDescribed(call: DocumentedCall, { method, status, mediaType, body }: SeenAnswer): string | null {
  const path = call.path.replace(/:([A-Za-z]+)/g, '{$1}');
  const responses: Responses = document.paths?.[path]?.[call.method]?.responses;
  const described = responses?.[String(status)];
  // Downloads by range, and a reader that has it already, are HTTP's.
  if (!described)
    return status === 206 || status === 304 || status === 416 ? null : `status ${status} is not described`;
  const types = Object.keys(described.content ?? {});
  if (types.length === 0) return body === '' ? null : 'has a body, described is none';
  const expected = types.find((type) => mediaType.replaceAll(' ', '') === type.replaceAll(' ', ''));
  if (expected === undefined) return `comes as ${mediaType}, described is ${types.join(' or ')}`;
  if (!/^application\/(geo\+)?json$/.test(expected)) return null;
  const escape = (part: string) => part.replaceAll('~', '~0').replaceAll('/', '~1');
  return invalidBy(
    `/paths/${escape(path)}/${call.method}/responses/${status}/content/${escape(expected)}/schema`,
    method,
    body,
  );
}

function invalidBy(pointer: string, method: string, body: string): string | null {
  if (method === 'HEAD') return null;
  const validate = validatorAt(encodeURI(pointer));
  try {
    if (validate(JSON.parse(body))) return null;
  } catch {
    return `is no JSON: ${body.slice(0, 200)}`;
  }
  return `${ajv.errorsText(validate.errors)}: ${body.slice(0, 300)}`;
}

/** Looks at every answer of a server on its way out; `check` throws where one was not as described. */
export function watchAnswers(handler: RequestListener): { handler: RequestListener; check: () => void } {
  const faults: string[] = [];
  return {
    handler(req, res) {
      const body = recordBody(res);
      res.once('finish', () => {
        const path = (req.url ?? '').replace(/[?#].*$/, '');
        const mediaType = String(res.getHeader('content-type') ?? '').replace(/; *charset=.*$/i, '');
        const fault = faultOfAnswer({
          method: req.method ?? '',
          path,
          status: res.statusCode,
          mediaType,
          body: body(),
        });
        if (fault !== null) faults.push(`${req.method} ${path} ${res.statusCode}: ${fault}`);
      });
      handler(req, res);
    },
    check() {
      if (faults.length > 0)
        throw new Error(
          `answers that are not as the OpenAPI document describes them:\n${[...new Set(faults)].slice(0, 10).join('\n')}`,
        );
    },
  };
}

/** The text of an answer that is JSON; of others nothing is kept. */
function recordBody(res: ServerResponse): () => string {
  const chunks: Buffer[] = [];
  const isKept = () => /json/.test(String(res.getHeader('content-type') ?? '')) || res.statusCode === 204;
  const keep = (chunk: unknown) => {
    if (isKept() && (typeof chunk === 'string' || chunk instanceof Uint8Array))
      chunks.push(Buffer.from(chunk as string));
  };
  const write = res.write.bind(res) as (...args: unknown[]) => boolean;
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  res.write = (...args: unknown[]) => {
    keep(args[0]);
    return write(...args);
  };
  res.end = (...args: unknown[]) => {
    keep(args[0]);
    return end(...args);
  };
  return () => Buffer.concat(chunks).toString();
}
