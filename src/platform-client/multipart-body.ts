import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { WireBody } from '../contract/index.ts';

export interface StreamedBody {
  readonly stream: Readable;
  readonly sizeBytes: number;
  readonly mediaType: string;
}

/**
 * A multipart form (RFC 7578) with one file, of known length and never in memory as a whole. Written here
 * because it is what an upload's speed hangs on: twice that of the form library tried before.
 */
export function multipartBody({ fields, file }: Extract<WireBody, { kind: 'multipart' }>): StreamedBody {
  const boundary = `part-${randomBytes(18).toString('hex')}`;
  const texts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"\r\n\r\n${value}\r\n`,
  );
  const fileHead = `--${boundary}\r\nContent-Disposition: form-data; name="${quote(file.field)}"; filename="${quote(file.fileName)}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
  const head = Buffer.from(texts.join('') + fileHead);
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  async function* bytes() {
    yield head;
    yield* file.content.open();
    yield tail;
  }
  return {
    stream: Readable.from(bytes(), { objectMode: false }),
    sizeBytes: head.length + file.content.sizeBytes + tail.length,
    mediaType: `multipart/form-data; boundary=${boundary}`,
  };
}

/** Writes names in the same form as browsers (HTML standard, multipart/form-data encoding). */
function quote(name: string): string {
  return name.replace(/"/g, '%22').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
}
