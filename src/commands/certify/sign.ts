import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { KitError } from '../../contract/index.ts';
import { digestOfTrace, digestOfTraces, type Report } from './report.ts';

/** What a signature is over: the report without it. */
const signedText = ({ signature: _signature, ...unsigned }: Report): Buffer => Buffer.from(JSON.stringify(unsigned));

/** Reads an Ed25519 private key in PEM. Throws `KitError`. */
export async function readSignKey(path: string): Promise<KeyObject> {
  return readKey(path, 'private', createPrivateKey);
}

export async function readPublicKey(path: string): Promise<KeyObject> {
  return readKey(path, 'public', createPublicKey);
}

async function readKey(path: string, kind: string, parse: (pem: string) => KeyObject): Promise<KeyObject> {
  const pem = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${error.code})`);
  });
  try {
    const key = parse(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // Told below; the parser's own message may quote the key.
  }
  throw new KitError('bad_arguments', `${path} must hold an Ed25519 ${kind} key in PEM; make one with: openssl genpkey -algorithm ed25519`);
}

export function signReport(report: Report, key: KeyObject): Report {
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  return { ...report, signature: { algorithm: 'Ed25519', publicKey, value: sign(null, signedText(report), key).toString('base64') } };
}

/** Why a report is not to be believed; null where its digests are right and the signature is `trusted`'s, or where null its own key's. */
export function faultOfReport(report: Report, trusted: KeyObject | null): string | null {
  for (const { id, launches } of report.scenarios) {
    if (launches.some(({ calls, sha256 }) => digestOfTrace(calls) !== sha256)) return `the trace of ${id} is not the one that was recorded`;
  }
  if (digestOfTraces(report.scenarios) !== report.tracesSha256) return 'the digest of the traces is wrong';
  const { signature } = report;
  if (!signature) return 'the report is not signed';
  if (signature.algorithm !== 'Ed25519') return `the signature is by ${String(signature.algorithm)}, not Ed25519`;
  const key = trusted ?? createPublicKey(signature.publicKey);
  return verify(null, signedText(report), key, Buffer.from(signature.value, 'base64')) ? null : 'the signature is not of this report, or not by this key';
}
