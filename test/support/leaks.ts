import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The forms in which a secret could stand somewhere: raw, percent-encoded, JSON-escaped, hex, and base64 at every alignment. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // Only what does not depend on the neighbours.
    const core = encoded.slice(shift === 0 ? 0 : shift + 1, -4);
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [
    ...new Set([
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      bytes.toString('hex'),
      ...base64,
    ]),
  ];
}

/** Finds `secrets` in `texts`. Returns the number of each, its form and its place, never the secret itself. */
export function findLeaks(secrets: readonly string[], texts: ReadonlyMap<string, string>): string[] {
  const leaks: string[] = [];
  for (const [s, secret] of secrets.entries()) {
    for (const [f, form] of formsOf(secret).entries()) {
      for (const [place, text] of texts) if (text.includes(form)) leaks.push(`secret ${s} in form ${f}: ${place}`);
    }
  }
  return leaks;
}

/** Every file below `folder` as Latin-1 text, so that no byte is lost. */
export async function readFolder(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(await Promise.all(files.map(async (path) => [path, await readFile(path, 'latin1')] as const)));
}
