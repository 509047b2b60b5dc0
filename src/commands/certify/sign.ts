import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  calculateJwkThumbprint,
  decodeProtectedHeader,
  exportJWK,
  FlattenedSign,
  flattenedVerify,
  importJWK,
  type JWK,
} from 'jose';
import { KitError } from '../../contract/index.ts';
import { digestOfTrace, digestOfTraces, type Report } from './report.ts';
import { codeOf } from '../../files/index.ts';

/** Text that a signature covers: the report without the signature. */
const signedText = ({ signature: _signature, ...unsigned }: Report): Buffer => Buffer.from(JSON.stringify(unsigned));

/** Reads an Ed25519 private key in PEM. Throws `KitError`. */
export async function readSignKey(path: string): Promise<KeyObject> {
  return readKey(path, 'private', createPrivateKey);
}

export async function readPublicKey(path: string): Promise<KeyObject> {
  return readKey(path, 'public', createPublicKey);
}

async function readKey(path: string, kind: string, parse: (pem: string) => KeyObject): Promise<KeyObject> {
  const pem = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new KitError('bad_arguments', `${path} cannot be read (${codeOf(error)})`);
  });
  try {
    const key = parse(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The message of the parser may quote the key, so the error below replaces it.
  }
  throw new KitError(
    'bad_arguments',
    `${path} must hold an Ed25519 ${kind} key in PEM; make one with: openssl genpkey -algorithm ed25519`,
  );
}

/** With a JWS over it (RFC 7515), its payload detached: the report itself. The header names the public key. */
export async function signReport(report: Report, key: KeyObject): Promise<Report> {
  const jwk = await exportJWK(createPublicKey(key));
  const header = { alg: algorithm, kid: await calculateJwkThumbprint(jwk), jwk };
  const { protected: protectedHeader = '', signature } = await new FlattenedSign(signedText(report))
    .setProtectedHeader(header)
    .sign(key);
  return { ...report, signature: { protected: protectedHeader, signature } };
}

const algorithm = 'EdDSA';

/** The public key that a signed report names itself, in PEM; null where it names none. */
export function keyOfReport({ signature }: Report): string | null {
  const jwk = signature && headerOf(signature.protected)?.jwk;
  return jwk ? createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString() : null;
}

/**
 * Reason not to trust a report; null if its digests and its signature are right. Without `trusted`, the report's own key
 * verifies the signature.
 */
export async function faultOfReport(report: Report, trusted: KeyObject | null): Promise<string | null> {
  for (const { id, launches } of report.scenarios) {
    if (launches.some(({ calls, sha256 }) => digestOfTrace(calls) !== sha256))
      return `the trace of ${id} is not the one that certify recorded`;
  }
  if (digestOfTraces(report.scenarios) !== report.tracesSha256) return 'the digest of the traces is wrong';
  const { signature } = report;
  if (!signature) return 'the report has no signature';
  const header = headerOf(signature.protected);
  if (header?.alg !== algorithm) return `the signature is by ${String(header?.alg)}, not ${algorithm}`;
  try {
    const key = trusted ?? (await importJWK(header.jwk ?? {}, algorithm));
    await flattenedVerify({ ...signature, payload: signedText(report).toString('base64url') }, key, {
      algorithms: [algorithm],
    });
    return null;
  } catch {
    return 'the signature does not match this report, or this key';
  }
}

function headerOf(protectedHeader: string): { alg?: string; jwk?: JWK } | null {
  try {
    return decodeProtectedHeader({ protected: protectedHeader });
  } catch {
    return null;
  }
}
