import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { KitError } from '../../contract/index.ts';
import { codeOf, messageOf } from '../../files/index.ts';
import type { TlsFiles } from '../../server/index.ts';

const days = '30';

/**
 * Makes a certificate for this machine's own names in `folder`, good for 30 days, and lets this process trust it. A browser
 * asks once whether to trust it. Throws `KitError` (`no_certificate`) without openssl.
 */
export async function makeCertificate(folder: string): Promise<TlsFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1';
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const args = ['req', '-x509', ...kind, '-days', days, '-subj', '/CN=localhost', '-addext', names];
  await promisify(execFile)('openssl', [...args, '-keyout', keyFile, '-out', certFile]).catch((cause: unknown) => {
    const reason = codeOf(cause) === 'ENOENT' ? 'openssl is not installed: apt-get install openssl' : messageOf(cause);
    throw new KitError('no_certificate', `dev --https cannot make a certificate: ${reason}`, { cause });
  });
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), await readFile(certFile, 'utf8')]);
  return { certFile, keyFile };
}
