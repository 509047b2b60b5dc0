import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import type { SourceType } from '../../contract/index.ts';
import { nowhere, type FileFacts } from './facts.ts';
import { kindOf } from './file-kinds.ts';

/** Facts of a file on a machine without GDAL: what its source type claims, and the digest of its bytes. Nothing reads its format. */
export async function unreadFacts(path: string, sourceType: SourceType, signal: AbortSignal): Promise<FileFacts> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash, { signal });
  return { kind: kindOf[sourceType], mediaType: 'application/octet-stream', sha256: hash.digest('hex'), ...nowhere };
}
