/** Opens a file of a simulated machine. Undefined if there is none. Each simulation sets it. */
export const virtualDisk: { read(path: string): Buffer | undefined } = { read: () => undefined };

const factsOf = (bytes: Buffer) => ({ ino: 1, size: bytes.length, ctimeMs: 0 });

/** Stands in for `node:fs/promises`: `open` opens the files of simulated machines, and `stat` looks at them. */
export const fsPromises = <Real extends object>(real: Real) => ({
  ...real,
  async open(path: string) {
    const bytes = virtualDisk.read(path);
    if (!bytes) throw Object.assign(new Error(`there is no ${path}`), { code: 'ENOENT' });
    return {
      async read(buffer: Buffer, offset: number, length: number, position: number) {
        return { bytesRead: bytes.copy(buffer, offset, position, position + length), buffer };
      },
      async stat() {
        return factsOf(bytes);
      },
      async close() {},
    };
  },
  async stat(path: string) {
    const bytes = virtualDisk.read(path);
    if (!bytes) throw Object.assign(new Error(`there is no ${path}`), { code: 'ENOENT' });
    return factsOf(bytes);
  },
});
