import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Files } from '../files/files.ts';
import type { Items } from '../stac/items.ts';
import type { Bundle, BundledInput } from './bundle.ts';

/** A larger input is told by its digest alone. */
const maxInputBytes = 8 * 1024 * 1024;

/** Space for inputs in a bundle. */
export class ByteBudget {
  #bytes: number;

  /** `taken`: bytes that it holds already. */
  constructor(taken = 0) {
    this.#bytes = 32 * 1024 * 1024 - taken;
  }

  /** In base64; null where there is no room for it. */
  async dataOf(path: string, sizeBytes: number): Promise<string | null> {
    if (sizeBytes > Math.min(maxInputBytes, this.#bytes)) return null;
    this.#bytes -= sizeBytes;
    return (await readFile(path)).toString('base64');
  }
}

/** Inputs of a run that the platform has, and the reasons why others cannot be provided again. */
export interface FoundInputs {
  readonly inputs: BundledInput[];
  readonly obstacles: string[];
}

export interface InputStores {
  readonly files: Pick<Files, 'find'>;
  readonly items: Pick<Items, 'find'>;
  readonly blobDir: string;
}

/** Items that the sandbox's own seed makes need no bytes: it makes them again. */
export async function collectInputs(
  bodies: readonly unknown[],
  { files, items, blobDir }: InputStores,
): Promise<FoundInputs> {
  const [inputs, obstacles]: [BundledInput[], string[]] = [[], []];
  const budget = new ByteBudget();
  for (const { collectionId, itemId } of itemsIn(bodies)) {
    const item = items.find(collectionId, itemId);
    const source = item?.source;
    if (source?.kind === 'shipped' || source?.kind === 'synthetic') continue;
    const file = source?.kind === 'file' ? files.find(source.fileId) : null;
    // A file has its digest before it has an item.
    if (!file || file.sha256 === null) {
      obstacles.push(
        item
          ? `its input ${collectionId}/${itemId} was imported from a folder of this machine`
          : `its input ${collectionId}/${itemId} is gone`,
      );
      continue;
    }
    const { sourceType, properties, blob, size, sha256 } = file;
    inputs.push({
      from: { type: 'item', collectionId, itemId, sourceType, properties },
      fileName: file.originalName,
      sizeBytes: size,
      sha256,
      data: await budget.dataOf(join(blobDir, blob), size),
    });
  }
  return { inputs, obstacles };
}

/** Every item that is named anywhere in the values, each once. */
function itemsIn(values: readonly unknown[]): { collectionId: string; itemId: string }[] {
  const found = new Map<string, { collectionId: string; itemId: string }>();
  const look = (value: unknown) => {
    if (value === null || typeof value !== 'object') return;
    const { collectionId, itemId }: { collectionId?: unknown; itemId?: unknown } = value;
    if (typeof collectionId === 'string' && typeof itemId === 'string')
      found.set(`${collectionId}/${itemId}`, { collectionId, itemId });
    Object.values(value).forEach(look);
  };
  values.forEach(look);
  return [...found.values()];
}

/** Until the app's own file is put into the bundle. */
export const localObstacle = (path: string): string =>
  `its input ${path} is a file of the app's own folder (INPUT_DIR): npm run replay -- --run RUN_ID brings it`;

/** Paths below the app's own input folder that the run was given. The platform does not have them. */
export const localPathsOf = ({ causes }: Pick<Bundle, 'causes'>): string[] => {
  const found = new Set<string>();
  const look = (value: unknown) => {
    if (value === null || typeof value !== 'object') return;
    const { type, path }: { type?: unknown; path?: unknown } = value;
    if (type === 'local' && typeof path === 'string') found.add(path);
    Object.values(value).forEach(look);
  };
  for (const cause of causes) if (cause.do === 'start') look(cause.body.input);
  return [...found];
};
