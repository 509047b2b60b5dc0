import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from './folders.ts';

/** A tree beside the work of the children, and its digest: every path and every byte. */
export async function victimTree() {
  const folder = join(await testFolder(), 'victim');
  for (const name of ['a', 'b', 'c']) {
    await mkdir(join(folder, name), { recursive: true });
    for (let i = 0; i < 50; i++) await writeFile(join(folder, name, `f${i}`), `${name} ${i}`);
  }
  for (let i = 0; i < 400; i++) await writeFile(join(folder, `f${i}`), `victim ${i}`);
  const digest = async () => {
    const hash = createHash('sha256');
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    for (const name of names.toSorted()) {
      hash.update(name);
      if ((await lstat(join(folder, name))).isFile()) hash.update(await readFile(join(folder, name)));
    }
    return hash.digest('hex');
  };
  return { folder, digest, before: await digest() };
}
