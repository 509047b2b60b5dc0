import type { Response } from 'express';

/** Headers of what a stranger uploaded: it can neither act on a page of ours nor be taken for one (contract, "served content"). */
export function sendUntrusted(res: Response, mediaType: string): void {
  res.type(mediaType);
  res.set({
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': 'sandbox',
    'Cache-Control': 'private, no-transform',
  });
}

/** Calls `sendUntrusted` for content to save, not to show. */
export function sendAsDownload(res: Response, fileName: string, mediaType: string): void {
  res.attachment(fileName);
  sendUntrusted(res, mediaType);
}
