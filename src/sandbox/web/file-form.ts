import type { IncomingMessage } from 'node:http';
import { finished, Transform, type Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type * as z from 'zod';
import { hasBody } from './json-body.ts';
import { invalid, parseValues, SandboxError, wrongMediaType } from './sandbox-error.ts';
import { adaptedBody, type AdaptedBody } from './wire-adapter.ts';

export interface FileFormOptions<Fields extends z.ZodType> {
  /** Name of the form's file field. */
  readonly fileField: string;
  /** Schema of the other fields. */
  readonly fields: Fields;
  /** Most bytes of the file. */
  readonly maxBytes: number;
  /** Error for a larger file. */
  readonly tooLarge: () => SandboxError;
  /** Cuts the connection after this time without data, ms. Default: 30,000. */
  readonly silenceMs?: number;
  /** Receives the text fields of a form that is refused because of its fields or parts. */
  onRefused?(fields: Readonly<Record<string, string>>): void;
}

/** A form whose file begins. */
export interface FileForm<Fields> {
  /** The fields that came before the file. Null if one is missing or invalid so far. */
  readonly before: Fields | null;
  /** Name of the file, if the form states it. */
  readonly fileName: string | undefined;
  /** The file. It must be read to its end. */
  readonly content: Readable;
  /** All fields, after the form has been read to its end. Throws 400 for a broken form, missing or invalid fields, and fields that came twice. */
  readonly end: () => Promise<Fields>;
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
 * Reads a multipart form with one file (spec 4.3, 4.4), its parts in any order, and returns what `take` makes of it. `take`
 * runs when the file begins, reads it at its own pace, and waits for `end` before it keeps anything. `body` is the request,
 * or what a fault left of it. Throws 415 for a body that is no multipart form, 400 for a form without the file or with it
 * under another name, and `tooLarge` as soon as that is known.
 */
export async function readFileForm<Fields extends z.ZodType, Result>(
  req: IncomingMessage,
  body: Readable,
  options: FileFormOptions<Fields>,
  take: (form: FileForm<z.output<Fields>>) => Promise<Result>,
): Promise<Result> {
  if (!hasBody(req)) throw invalid([{ path: options.fileField, message: 'is required' }]);
  // By its own length, before anything is read.
  if (Number(req.headers['content-length'] ?? 0) > options.maxBytes + overheadBytes) throw options.tooLarge();
  cutSilence(req, body, options.silenceMs ?? usualSilenceMs);
  const adapted = adaptedBody(req);
  const parts = adapted?.isRaw
    ? rawFile(body, adapted.fields, options)
    : formParts(body, createParser(req, options.maxBytes), adapted, options);
  try {
    const { content, fileName } = await parts.file;
    const before = options.fields.safeParse(parts.fields);
    const end = async () => {
      await parts.whole;
      if (!options.fields.safeParse(parts.fields).success) options.onRefused?.(parts.fields);
      return parseValues(options.fields, parts.fields);
    };
    // No field follows the file of a raw body: a wrong one is refused before the file is read.
    if (adapted?.isRaw) await end();
    return await take({ before: before.success ? before.data : null, fileName, content, end });
  } catch (error) {
    parts.discard(error);
    // A form that is not whole has the first reason. The file's own error may be a later one.
    await parts.whole;
    throw error;
  }
}

function cutSilence({ socket }: IncomingMessage, body: Readable, silenceMs: number): void {
  const silence = setTimeout(() => {
    // A body that waits for its turn is not silent.
    if (body.isPaused()) silence.refresh();
    else body.destroy(malformed('the connection was silent'));
  }, silenceMs);
  // Node does not close a request that was answered before it was read, even if the connection ends.
  const close = () => void body.destroy();
  body.on('data', () => silence.refresh());
  socket.once('close', close);
  finished(body, () => {
    clearTimeout(silence);
    socket.removeListener('close', close);
  });
}

/** The parts of a body as they are read. */
interface FormParts {
  /** Text fields so far, without a prototype. */
  readonly fields: Readonly<Record<string, string>>;
  /** The file, when it begins. */
  readonly file: Promise<{ readonly content: Readable; readonly fileName: string | undefined }>;
  /** Resolves when everything has been read and is well formed. */
  readonly whole: Promise<void>;
  /** Ends the reading because of an error. The rest of the body is read and thrown away, or the client would never read the answer. */
  discard(error: unknown): void;
}

function formParts(
  body: Readable,
  parser: BusboyInstance,
  adapted: AdaptedBody | undefined,
  options: Pick<FileFormOptions<z.ZodType>, 'fileField' | 'tooLarge' | 'onRefused'>,
): FormParts {
  // No prototype, because a form may have a field called toString; `Object.create` gives `any`.
  const fields = Object.assign(Object.create(null) as Record<string, string>, adapted?.fields);
  const faults = new PartFaults(adapted?.file ?? options.fileField);
  const file = Promise.withResolvers<{ content: Readable; fileName: string | undefined }>();
  const whole = Promise.withResolvers<void>();
  // A rejection without a reader must not stop the process.
  file.promise.catch(() => {});
  whole.promise.catch(() => {});
  let reading: Readable | null = null;
  const missing = new Set(adapted?.demanded);

  function discard(error: unknown): void {
    file.reject(error);
    whole.reject(error);
    body.unpipe(parser);
    parser.destroy();
    // Destroying the parser does not destroy its current file.
    reading?.destroy(error instanceof Error ? error : undefined);
    body.resume();
  }

  parser.on('field', (wireName, value, _isNameCut, isValueCut) => {
    const name = adapted?.fieldOf(wireName) ?? wireName;
    missing.delete(wireName);
    try {
      value = adapted?.valueOf(wireName, value) ?? value;
    } catch (error) {
      return discard(error);
    }
    if (name in fields || faults.repeated.has(name) || isValueCut) faults.repeated.add(name);
    else fields[name] = value;
  });
  parser.on('file', (wireName, content, fileName: string | undefined) => {
    const name = adapted?.fieldOf(wireName) ?? wireName;
    content.on('error', () => {}); // `whole` has the reason, and there may be no reader yet
    if (name !== options.fileField) faults.misnamed.add(wireName);
    else faults.files += 1;
    if (name !== options.fileField || faults.files > 1) return void content.resume();
    reading = content;
    content.on('limit', () => discard(options.tooLarge()));
    file.resolve({ content, fileName });
  });
  parser.on('filesLimit', () => (faults.files += 1));
  for (const limit of ['fieldsLimit', 'partsLimit'] as const) parser.on(limit, () => (faults.isOverfull = true));
  parser.on('finish', () => {
    const details = [...faults.details(), ...[...missing].map((name) => ({ path: name, message: 'is required' }))];
    if (details.length === 0) return whole.resolve();
    options.onRefused?.(fields);
    file.reject(invalid(details));
    whole.reject(invalid(details));
  });
  parser.on('error', (cause) => discard(notWellFormed(cause)));
  const onCut = () => discard(malformed('ended before the form did'));
  body.on('error', onCut);
  body.on('close', () => {
    if (!body.readableEnded) onCut();
  });
  body.pipe(parser);
  return { fields, file: file.promise, whole: whole.promise, discard };
}

/** Mistakes in the parts of a form. */
class PartFaults {
  readonly #fileField: string;
  readonly repeated = new Set<string>();
  readonly misnamed = new Set<string>();
  files = 0;
  isOverfull = false;

  constructor(fileField: string) {
    this.#fileField = fileField;
  }

  details(): { path: string; message: string }[] {
    const path = this.#fileField;
    const details = [...this.repeated].map((name) => ({ path: shown(name), message: 'must come once' }));
    for (const name of this.misnamed)
      details.push({
        path,
        message: `is required: the form's file part is called ${JSON.stringify(shown(name))}, and must be called ${JSON.stringify(path)}`,
      });
    if (this.isOverfull) details.push({ path: '', message: `must have at most ${maxFields} fields` });
    else if (this.files !== 1 && this.misnamed.size === 0)
      details.push({ path, message: this.files === 0 ? 'is required' : 'must come once' });
    return details;
  }
}

/** A body that is the file and nothing else, as some platforms have it; its fields stood in the address or the headers. */
function rawFile(
  body: Readable,
  fields: Readonly<Record<string, string>>,
  options: Pick<FileFormOptions<z.ZodType>, 'maxBytes' | 'tooLarge'>,
): FormParts {
  let bytes = 0;
  const content = new Transform({
    highWaterMark: 1024 * 1024,
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > options.maxBytes) done(options.tooLarge());
      else done(null, chunk);
    },
  });
  content.on('error', () => {}); // its reader gets the error, and there may be none yet
  const onCut = () => content.destroy(malformed('ended before the chunk did'));
  body.once('error', onCut);
  body.once('close', () => {
    if (!body.readableEnded) onCut();
  });
  body.pipe(content);
  return {
    fields,
    file: Promise.resolve({ content, fileName: undefined }),
    // A reader of the content knows that it has all of it.
    whole: Promise.resolve(),
    discard() {
      body.unpipe(content);
      content.destroy();
      body.resume();
    },
  };
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
