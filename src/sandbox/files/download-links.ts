import { fillPath, limits } from '../../contract/index.ts';
import { signedCalls } from '../call/signed-calls.ts';
import type { SandboxClock } from '../clock.ts';
import type { Signer } from '../secrets.ts';
import { SandboxError } from '../web/sandbox-error.ts';

const purpose = 'download';

/** Pre-signed download addresses (spec 4.6): no key, 24 hours, and every parameter under the signature. */
export interface DownloadLinks {
  create(fileId: string, useDefaultContentType: boolean): string;
  /** Throws 403 for an altered or late one. */
  verify(fileId: string, query: Readonly<Record<string, unknown>>): { useDefaultContentType: boolean };
}

export function createDownloadLinks(signer: Signer, clock: SandboxClock, publicUrl: () => string): DownloadLinks {
  return {
    create(fileId, useDefaultContentType) {
      const expires = String(clock.now() + limits.downloadUrlMs);
      const type = useDefaultContentType ? 'default' : 'none';
      const url = new URL(`${publicUrl()}${fillPath(signedCalls.download.path, { fileId })}`);
      url.search = new URLSearchParams({
        expires,
        type,
        signature: signer.sign(purpose, fileId, expires, type),
      }).toString();
      return url.href;
    },
    verify(fileId, { expires, type, signature, ...others }) {
      const isSigned =
        Object.keys(others).length === 0 &&
        typeof expires === 'string' &&
        typeof type === 'string' &&
        typeof signature === 'string' &&
        signer.verify(signature, purpose, fileId, expires, type);
      if (!isSigned) throw new SandboxError('link_invalid');
      if (clock.now() >= Number(expires)) throw new SandboxError('link_expired');
      return { useDefaultContentType: type === 'default' };
    },
  };
}
