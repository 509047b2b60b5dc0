import express, { type Request, type RequestHandler } from 'express';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { limits } from '../../contract/index.ts';
import { isMultipart } from './file-form.ts';
import { hasBody, requireUtf8 } from './json-body.ts';
import { adaptedBody } from './wire-adapter.ts';
import { invalid, notUtf8, SandboxError, wrongMediaType } from './sandbox-error.ts';

const urlencoded = express.urlencoded({
  extended: false,
  limit: limits.jsonBodyBytes,
  parameterLimit: limits.formFields,
  verify: requireUtf8(notUtf8),
});

const json = express.json({ limit: limits.jsonBodyBytes, strict: false });
const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'];
const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;

/** The fields of a body that Express has read as a form; none without a body. Each is a text, or a list of those with its name. */
export const fieldsOf = (req: Pick<Request, 'body'>): Record<string, unknown> =>
  // A parser of forms makes nothing but objects.
  (req.body ?? {}) as Record<string, unknown>;

/**
 * Reads a form without a file, urlencoded or multipart, into `req.body`. A body of another type is 415, but for the empty object `{}`; no
 * body reads as an empty form. A field that came twice is 400.
 */
export const formBody: RequestHandler = (req, res, next) => {
  const keepSingle = (error?: unknown) => {
    if (error) return next(error);
    try {
      // Express gives its body the type `any`.
      req.body = adaptedBody(req)?.read(req.body) ?? (req.body as unknown);
    } catch (refusal) {
      return next(refusal);
    }
    const repeated = Object.entries(fieldsOf(req)).filter(([, value]) => typeof value !== 'string');
    next(
      repeated.length > 0
        ? invalid(
            repeated.map(([name]) => ({ path: name.slice(0, 100), message: 'must come once, and not be too long' })),
          )
        : undefined,
    );
  };
  if (!hasBody(req)) {
    req.body = {};
    return keepSingle();
  }
  if (req.is('application/x-www-form-urlencoded')) return urlencoded(req, res, keepSingle);
  // Some clients always send JSON: an object without fields is a form without fields.
  if (req.is('application/json'))
    return json(req, res, (error?: unknown) => {
      if (error) return next(error);
      if (!isEmptyObject(req.body)) return next(wrongMediaType(formTypes));
      keepSingle();
    });
  if (!isMultipart(req)) throw wrongMediaType(formTypes);
  readMultipart(req).then((fields) => {
    req.body = fields;
    keepSingle();
  }, next);
};

function readMultipart(req: Parameters<RequestHandler>[0]): Promise<Record<string, unknown>> {
  const malformed = (cause: unknown) =>
    new SandboxError('malformed_form', {
      cause,
      details: [{ path: '', message: 'is not a well-formed multipart form' }],
    });
  return new Promise((resolve, reject) => {
    // No prototype, because a form may have a field called toString; `Object.create` gives `any`.
    const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    let parser: BusboyInstance;
    try {
      parser = new Busboy({
        headers: { 'content-type': req.headers['content-type'] ?? '' },
        limits: { fields: limits.formFields, fieldSize: limits.jsonBodyBytes, headerPairs: 50 },
      });
    } catch (cause) {
      return reject(malformed(cause));
    }
    parser.on(
      'field',
      (name, value, _isNameCut, isValueCut) => (fields[name] = name in fields || isValueCut ? null : value),
    );
    // A form that ends within its file: the file's stream fails too, and must not go unheard.
    parser.on('file', (_name, content) => void content.on('error', () => {}).resume());
    parser.on('error', (cause) => {
      req.unpipe(parser);
      req.resume();
      reject(malformed(cause));
    });
    parser.on('finish', () => resolve(fields));
    req.on('aborted', () => reject(malformed(null)));
    req.pipe(parser);
  });
}
