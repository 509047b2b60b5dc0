import type { IncomingMessage } from 'node:http';
import { Transform, type Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { hasBody } from './json-body.ts';
import { invalid, SandboxError, wrongMediaType } from './sandbox-error.ts';
import { adaptedBody } from './wire-adapter.ts';

export interface FileFormOptions {
  /** Name of the form's file field. */
  readonly fileField: string;
  /** Most bytes of the file. */
  readonly maxBytes: number;
  /** Error for a larger file. */
  readonly tooLarge: () => SandboxError;
  /** Cuts the connection after this time without data, ms. Default: 30,000. */
  readonly silenceMs?: number;
  /** Receives the fields of a form that is refused because of its parts. */
  onRefused?(fields: Readonly<Record<string, string>>): void;
  /** The file part, with the fields that came before it. Must read `content` to its end. */
  onFile(content: Readable, fieldsSoFar: Readonly<Record<string, string>>, fileName: string | undefined): Promise<void>;
}

/** Most bytes of a form besides its file. */
const overheadBytes = 1024 * 1024;
const usualSilenceMs = 30_000;
const maxFields = 20;
const fieldBytes = 1024 * 1024;

const malformed = (message: string, cause?: unknown) =>
  new SandboxError('malformed_form', { cause, details: [{ path: '', message }] });
const notWellFormed = (cause: unknown) => malformed('is not a well-formed multipart form', cause);

/**
 * Reads a multipart form with one file (spec 4.3, 4.4), its parts in any order, and streams the file into
 * `onFile` at the pace at which it is taken; answers the text fields by name. `body` is the request, or what
 * a fault left of it. Throws 415 for what is no multipart form, 400 for a broken one, for one without the file or with
 * one under another name, and for a field that came twice; `tooLarge` as soon as that is known.
 */
export async function readFileForm(
  req: IncomingMessage,
  body: Readable,
  options: FileFormOptions,
): Promise<Readonly<Record<string, string>>> {
  if (!hasBody(req)) throw invalid([{ path: options.fileField, message: 'is required' }]);
  // By its own length, before anything is read.
  if (Number(req.headers['content-length'] ?? 0) > options.maxBytes + overheadBytes) throw options.tooLarge();
  const silence = setTimeout(() => {
    // A body that waits for its turn is not silent.
    if (body.isPaused()) silence.refresh();
    else body.destroy(malformed('the connection was silent'));
  }, options.silenceMs ?? usualSilenceMs);
  body.on('data', () => silence.refresh());
  body.once('close', () => clearTimeout(silence));
  const spoken = adaptedBody(req);
  if (spoken?.isRaw) return readRawFile(body, spoken.fields, options);
  const parser = createParser(req, options.maxBytes);
  // No prototype, because a form may have a field called toString; `Object.create` gives `any`.
  const fields = Object.assign(Object.create(null) as Record<string, string>, spoken?.fields);
  const repeated = new Set<string>();
  const misnamed = new Set<string>();
  let files = 0;
  let file: Readable | null = null;
  let taken: Promise<void> = Promise.resolve();

  const { promise: parsed, resolve, reject } = Promise.withResolvers<void>();
  parser.on('field', (wireName, value, _isNameCut, isValueCut) => {
    const name = spoken?.fieldOf(wireName) ?? wireName;
    if (name in fields || repeated.has(name) || isValueCut) repeated.add(name);
    else fields[name] = value;
  });
  parser.on('file', (name, content, fileName: string | undefined) => {
    if (name !== options.fileField) {
      misnamed.add(name);
      return void content.on('error', () => {}).resume();
    }
    files += 1;
    if (files > 1) return void content.resume();
    file = content;
    content.on('limit', () => reject(options.tooLarge()));
    content.on('error', () => {}); // told by `body` too, and there may be no reader yet
    taken = options.onFile(content, { ...fields }, fileName);
    // A file that is refused early ends the reading.
    taken.catch(reject);
  });
  parser.on('filesLimit', () => (files += 1));
  let isOverfull = false;
  for (const limit of ['fieldsLimit', 'partsLimit'] as const) parser.on(limit, () => (isOverfull = true));
  parser.on('finish', resolve);
  parser.on('error', (cause) => reject(notWellFormed(cause)));
  const onCut = () => reject(malformed('ended before the form did'));
  body.on('error', onCut);
  body.on('close', () => {
    if (!body.readableEnded) onCut();
  });
  body.pipe(parser);

  try {
    await parsed;
    await taken;
  } catch (error) {
    body.unpipe(parser);
    parser.destroy();
    // Destroying the parser does not destroy its current file stream.
    // A listener sets it, which TypeScript does not see here.
    (file as Readable | null)?.destroy(error instanceof Error ? error : undefined);
    // Answered early: what the client is still sending is read and thrown away, or it would never read the answer.
    body.resume();
    await taken.catch(() => {});
    throw error;
  }
  const faults = [...repeated].map((name) => ({ path: shown(name), message: 'must come once' }));
  for (const name of misnamed)
    faults.push({
      path: options.fileField,
      message: `is required: the form's file part is called ${JSON.stringify(shown(name))}, and must be called ${JSON.stringify(options.fileField)}`,
    });
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- a listener sets it
  if (isOverfull) faults.push({ path: '', message: `must have at most ${maxFields} fields` });
  else if (files !== 1 && misnamed.size === 0)
    faults.push({ path: options.fileField, message: files === 0 ? 'is required' : 'must come once' });
  if (faults.length > 0) {
    options.onRefused?.(fields);
    throw invalid(faults);
  }
  return fields;
}

/** A body that is the file and nothing else, as some platforms have it; its fields stood in the address or the headers. */
async function readRawFile(
  body: Readable,
  fields: Readonly<Record<string, string>>,
  options: FileFormOptions,
): Promise<Readonly<Record<string, string>>> {
  let bytes = 0;
  const content = new Transform({
    highWaterMark: 1024 * 1024,
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > options.maxBytes) done(options.tooLarge());
      else done(null, chunk);
    },
  });
  content.on('error', () => {}); // told by `onFile`, and there may be no reader yet
  const onCut = () => content.destroy(malformed('ended before the chunk did'));
  body.once('error', onCut);
  body.once('close', () => {
    if (!body.readableEnded) onCut();
  });
  body.pipe(content);
  try {
    await options.onFile(content, fields, undefined);
  } catch (error) {
    body.unpipe(content);
    content.destroy();
    body.resume();
    throw error;
  }
  return fields;
}

/** A stranger's name for a field, as far as it is repeated. */
function shown(name: string): string {
  return name.slice(0, 100);
}

function createParser(req: IncomingMessage, maxBytes: number): BusboyInstance {
  const contentType = req.headers['content-type'];
  if (contentType === undefined || !isMultipart(req)) throw wrongMediaType(['multipart/form-data']);
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      // Larger pieces take 5 MiB more at the peak of an upload, and are no faster.
      fileHwm: 64 * 1024,
      highWaterMark: 256 * 1024,
      preservePath: true,
      limits: {
        files: 1,
        fields: maxFields,
        parts: maxFields + 1,
        fieldSize: fieldBytes,
        fileSize: maxBytes,
        headerPairs: 50,
      },
    });
  } catch (cause) {
    throw notWellFormed(cause);
  }
}

export function isMultipart(req: IncomingMessage): boolean {
  return /^multipart\/form-data\b/i.test(req.headers['content-type'] ?? '');
}
