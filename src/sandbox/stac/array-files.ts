import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

export type NumberArray = Float64Array | Uint32Array | Uint16Array | Uint8Array;
const types = { Float64Array, Uint32Array, Uint16Array, Uint8Array };
type TypeName = keyof typeof types;

/** What a file says of itself, as JSON. */
interface Header<Key> {
  readonly key: Key;
  readonly arrays: readonly { readonly name: string; readonly type: TypeName; readonly length: number }[];
}

export interface KeptArrays {
  /** Of the array of that name; 0 where there is none. */
  lengthOf(name: string): number;
  /** The array of that name, with room for `more` values behind its own, which are zero. Where the file has none of an accepted type, `load` finds nothing. */
  take<T extends TypeName>(name: string, accepted: readonly T[], more?: number): InstanceType<(typeof types)[T]>;
}

const magic = 'kit-arrays-1';
/** Magic, then the bytes of the header as a number of 4 bytes. */
const prefixBytes = magic.length + 4;
const suffix = '.bin';

/**
 * Arrays of numbers in files: what was made of the database and can be made again. A file is whole or not there;
 * one that is damaged is none.
 */
export class ArrayFiles<Key> {
  #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What `read` makes of a file's arrays; null where there is none, its key is not accepted, or it is no such file. */
  load<T>(name: string, accepts: (key: Key) => boolean, read: (arrays: KeptArrays, key: Key) => T): T | null {
    let file: number;
    try {
      file = openSync(join(this.#folder, name + suffix), 'r');
    } catch {
      return null;
    }
    try {
      const header = readHeader<Key>(file);
      return header && accepts(header.key) ? read(arraysOf(file, header), header.key) : null;
    } catch {
      // Damaged, whatever it is that cannot be read of it: it is made again.
      return null;
    } finally {
      closeSync(file);
    }
  }

  /** Writes a file anew. The arrays must not change meanwhile. */
  async save(name: string, key: Key, arrays: Readonly<Record<string, NumberArray>>): Promise<void> {
    const described = Object.entries(arrays).map(([one, array]) => ({
      name: one,
      type: array.constructor.name as TypeName,
      length: array.length,
    }));
    const header = Buffer.from(JSON.stringify({ key, arrays: described } satisfies Header<Key>));
    const prefix = Buffer.alloc(prefixBytes, magic);
    prefix.writeUInt32LE(header.length, magic.length);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, name + suffix);
    const partial = `${path}.partial`;
    const file = await open(partial, 'w', 0o600);
    try {
      await file.writeFile(prefix);
      await file.writeFile(header);
      for (const { buffer, byteOffset, byteLength } of Object.values(arrays))
        await file.writeFile(new Uint8Array(buffer, byteOffset, byteLength));
      // A name that outlives a power cut must not stand for bytes that did not.
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
  }

  /** All other files go. */
  async keepOnly(names: readonly string[]): Promise<void> {
    const kept = new Set(names.map((name) => name + suffix));
    for (const one of await readdir(this.#folder).catch(() => []))
      if (!kept.has(one)) await rm(join(this.#folder, one), { force: true });
  }
}

/** With the place of the first array. */
function readHeader<Key>(file: number): (Header<Key> & { readonly from: number }) | null {
  const prefix = readBytes(file, Buffer.alloc(prefixBytes), 0);
  if (prefix.toString('latin1', 0, magic.length) !== magic) return null;
  const length = prefix.readUInt32LE(magic.length);
  if (length > fstatSync(file).size) return null;
  const header = JSON.parse(readBytes(file, Buffer.alloc(length), prefixBytes).toString()) as Header<Key>;
  const bytes = header.arrays.reduce((sum, { type, length: n }) => sum + n * types[type].BYTES_PER_ELEMENT, 0);
  const from = prefixBytes + length;
  return fstatSync(file).size === from + bytes ? { ...header, from } : null;
}

function arraysOf(file: number, { arrays, from }: Header<unknown> & { readonly from: number }): KeptArrays {
  return {
    lengthOf: (name) => arrays.find((one) => one.name === name)?.length ?? 0,
    take(name, accepted, more = 0) {
      let at = from;
      for (const one of arrays) {
        const bytes = one.length * types[one.type].BYTES_PER_ELEMENT;
        const type = accepted.find((type) => type === one.type);
        if (one.name === name && type) {
          const array = new types[type](one.length + more);
          readBytes(file, new Uint8Array(array.buffer, 0, bytes), at);
          return array as InstanceType<(typeof types)[typeof type]>;
        }
        at += bytes;
      }
      throw new Error(`no ${name}`);
    },
  };
}

/** Fills `into`. */
function readBytes<T extends Uint8Array>(file: number, into: T, at: number): T {
  for (let done = 0; done < into.length;) {
    const bytes = readSync(file, into, done, Math.min(into.length - done, 2 ** 30), at + done);
    if (bytes === 0) throw new Error('it ends early');
    done += bytes;
  }
  return into;
}
