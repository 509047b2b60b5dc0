import type { Request, Response } from 'express';

/** Gives a file's answer a strong validator (RFC 9110, 8.8.3), by which a reader of ranges notices another file: `If-Range`, `If-None-Match`. */
export function setValidator(
  res: Response,
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
): void {
  res.set('ETag', `"${size.toString(16)}-${Math.round(mtimeMs * 1_000).toString(16)}"`);
}

/**
 * Makes of a `Range` header what RFC 9110 (14.1.2) has it mean, before what answers it reads it: a suffix longer than the
 * file is the whole file, and a header with a range that ends before it begins is none.
 */
export function readRange(req: Request, size: number): void {
  // Only GET has ranges (RFC 9110, 14.2). A weak validator never matches in `If-Range` (13.1.5), and the library takes it for the strong one.
  const isWeak = /^\s*W\//.test(req.get('if-range') ?? '');
  if (req.method !== 'GET' || isWeak) delete req.headers.range;
  const header = req.headers.range;
  const specs = /^bytes=(.*)$/i
    .exec(header ?? '')?.[1]
    ?.split(',')
    .map((part) => part.trim());
  if (!specs) return;
  const isBackwards = specs.some((spec) => {
    const [, first, last] = /^(\d+)-(\d+)$/.exec(spec) ?? [];
    return first !== undefined && Number(last) < Number(first);
  });
  if (isBackwards) delete req.headers.range;
  else
    req.headers.range = `bytes=${specs
      .map((spec) => (Number(/^-(\d+)$/.exec(spec)?.[1] ?? 0) > size && size > 0 ? '0-' : spec))
      .join(',')}`;
}
