import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { limits, uploadChunk } from '../../contract/index.ts';
import { invalid, SandboxError } from '../web/sandbox-error.ts';

export interface ChunkForm {
  /** Text fields by name; a field that came twice is not here. */
  readonly fields: Readonly<Record<string, string>>;
}

export interface ChunkFormHandlers {
  /** The file part, with the fields that came before it. Must read `content` to its end. */
  onFile(content: Readable, fieldsSoFar: Readonly<Record<string, string>>): Promise<void>;
}

const partHeaderBytes = 1024 * 1024;
const maxFields = 20;
const fieldBytes = 16 * 1024;

/**
 * Reads the multipart form of a chunk (spec 4.4), its parts in any order, and streams the file part into
 * `onFile` at the pace at which it is taken. `body` is the request, or what a fault left of it.
 * Throws 415 for what is no multipart form, 400 for a broken one, for one without the file, and for a chunk that is too large.
 */
export async function readChunkForm(req: IncomingMessage, body: Readable, handlers: ChunkFormHandlers): Promise<ChunkForm> {
  const parser = createParser(req);
  const fields: Record<string, string> = {};
  const repeated = new Set<string>();
  let files = 0;
  let tooLarge = false;
  let taken: Promise<void> = Promise.resolve();

  const { promise: parsed, resolve, reject } = Promise.withResolvers<void>();
  parser.on('field', (name, value, info) => {
    if (name in fields || repeated.has(name) || info.valueTruncated) repeated.add(name);
    else fields[name] = value;
  });
  parser.on('file', (name, content) => {
    files += 1;
    if (name !== uploadChunk.fileField || files > 1) return void content.resume();
    content.on('limit', () => (tooLarge = true));
    content.on('error', () => {}); // told by `body` too, and there may be no reader yet
    taken = handlers.onFile(content, { ...fields });
    // A chunk that is refused early ends the reading.
    taken.catch(reject);
  });
  parser.on('filesLimit', () => (files += 1));
  parser.on('close', resolve);
  parser.on('error', (cause) => reject(new SandboxError(400, 'malformed_form', 'Bad Request', { cause, details: [{ path: '', message: 'is not a well-formed multipart form' }] })));
  const onCut = () => reject(new SandboxError(400, 'malformed_form', 'Bad Request', { details: [{ path: '', message: 'ended before the form did' }] }));
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
    // Answered early: what the client is still sending is read and thrown away, or it would never read the answer.
    body.resume();
    await taken.catch(() => {});
    throw error;
  }
  for (const name of repeated) delete fields[name];
  if (tooLarge) throw new SandboxError(400, 'chunk_too_large', `Chunk is larger than ${limits.chunkBytes} bytes`);
  if (files !== 1) throw invalid([{ path: uploadChunk.fileField, message: files === 0 ? 'is required' : 'must come once' }]);
  return { fields };
}

function createParser(req: IncomingMessage): busboy.Busboy {
  const type = req.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\b/i.test(type)) throw new SandboxError(415, 'unsupported_media_type', 'Unsupported Media Type');
  try {
    return busboy({
      headers: req.headers,
      fileHwm: 256 * 1024,
      highWaterMark: 1024 * 1024,
      limits: { files: 1, fields: maxFields, parts: maxFields + 1, fieldSize: fieldBytes, fileSize: limits.chunkBytes, headerPairs: 50 },
    });
  } catch (cause) {
    throw new SandboxError(400, 'malformed_form', 'Bad Request', { cause, details: [{ path: '', message: 'is not a well-formed multipart form' }] });
  }
}

/** A chunk that cannot fit by its own length is refused before it is read. */
export function refuseOversized(req: IncomingMessage): void {
  if (Number(req.headers['content-length'] ?? 0) > limits.chunkBytes + partHeaderBytes) {
    throw new SandboxError(400, 'chunk_too_large', `Chunk is larger than ${limits.chunkBytes} bytes`);
  }
}
