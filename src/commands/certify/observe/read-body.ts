import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { Busboy } from '@fastify/busboy';
import { KitError } from '../../../contract/index.ts';
import type { BodyEnds } from './body-copy.ts';

/** A body without its content coding (RFC 9110, 8.4). Throws where it is damaged or larger than `maxBytes`. */
export function decoded(body: Uint8Array, contentEncoding: string | undefined, maxBytes: number): Buffer {
  const options = { maxOutputLength: maxBytes };
  const coding = (contentEncoding ?? '').trim().toLowerCase();
  if (coding === 'gzip' || coding === 'x-gzip') return gunzipSync(body, options);
  if (coding === 'deflate') return inflateSync(body, options);
  if (coding === 'br') return brotliDecompressSync(body, options);
  if (coding !== '' && coding !== 'identity')
    throw new KitError('unknown_coding', `it has the coding ${coding.slice(0, 40)}`);
  return Buffer.from(body);
}

/** Texts of a form, and the size of its file. */
interface FormFacts {
  readonly fields: Readonly<Record<string, string>>;
  readonly fileBytes: number | null;
}

const maxFieldBytes = 64 * 1024;

/**
 * Reads a form of one large file by both ends of its body: fields come before or after the file, and only the file is
 * larger than an end. Resolves to what could be read of a form that is cut or malformed.
 */
export async function readForm({ bytes, missing }: BodyEnds, contentType: string): Promise<FormFacts> {
  const fields = Object.assign(Object.create(null) as Record<string, string>, {});
  let fileBytes: number | null = null;
  const read = Promise.withResolvers<void>();
  try {
    const limits = { files: 1, fields: 20, fieldSize: maxFieldBytes };
    const parser = new Busboy({ headers: { 'content-type': contentType }, limits });
    parser.on('field', (name, value) => (fields[name] ??= value));
    parser.on('file', (_name, content) => {
      let size = 0;
      content.on('error', () => {});
      content.on('data', (part: Buffer) => (size += part.length));
      content.once('end', () => (fileBytes = size + missing));
    });
    parser.once('finish', read.resolve);
    parser.once('error', () => read.resolve());
    parser.once('close', read.resolve);
    parser.end(bytes);
  } catch {
    read.resolve();
  }
  await read.promise;
  return { fields, fileBytes };
}
