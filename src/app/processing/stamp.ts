/** Only for child processes: what made an output, written into it. */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import gdal from 'gdal-async';
import type { ItemFacts } from '../../raster/band-reader.ts';
import type { FileDigests } from '../../child/in-child.ts';
import { addMetadata, readMetadata, type Metadata } from '../../raster/metadata.ts';
import type { MadeOutput } from './check-outputs.ts';
import { makeProvenance, provenanceTag } from './make-provenance.ts';
import type { ProvenanceKnown, ReadInputs } from './provenance.ts';

/** The files of one input, where they lie. */
interface InputFiles {
  readonly name: string;
  readonly paths: readonly string[];
  readonly ofItems?: readonly ItemFacts[] | undefined;
}

export interface Stamp {
  /**
   * For outputs that are written while the input's digests are still being taken: each stands for itself, as long as it will be.
   * A Cloud Optimized GeoTIFF cannot be given metadata afterwards.
   */
  readonly metadata: Metadata;
  /** Puts the digests in their places; what was read. */
  settle(made: readonly MadeOutput[]): Promise<ReadInputs>;
}

/** Stamp of a trial. Nobody keeps its output. */
export const noStamp: Stamp = { metadata: {}, settle: () => Promise.resolve([]) };

function writtenFacts({ observedAt, bands }: ItemFacts = { observedAt: null, bands: [] }) {
  return {
    ...(observedAt !== null && { observedAt }),
    ...(bands.length > 0 && { bands: bands.map((band) => ({ ...band, names: [...band.names] })) }),
  };
}

export function beginStamp(known: ProvenanceKnown, inputs: readonly InputFiles[], digests: FileDigests): Stamp {
  const salt = randomBytes(16).toString('hex');
  const placeholder = (name: string) => createHash('sha256').update(`${salt} ${name}`).digest('hex');
  const taken = digests.of(inputs.flatMap(({ paths }) => paths));
  const pending: ReadInputs = inputs.map(({ name, paths, ofItems = [] }, i) => ({
    name,
    files: paths.map((path, j) => ({
      // A name may hold what no terminal is to be shown, and what parts a path elsewhere.
      fileName: basename(path).replace(/[\p{Cc}\\]/gu, '_'),
      sizeBytes: statSync(path).size,
      sha256: placeholder(`${i} ${j}`),
      ...writtenFacts(ofItems[j]),
    })),
  }));
  const before = { ...makeProvenance(known, pending, gdal.version), digest: placeholder('digest') };
  return {
    metadata: { [provenanceTag]: JSON.stringify(before) },
    async settle(made) {
      const found = [...(await taken)];
      const read = pending.map(({ name, files }) => ({
        name,
        files: files.map((file) => ({ ...file, ...found.shift() })),
      }));
      const after = makeProvenance(known, read, gdal.version);
      const digestsOf = ({ inputs: all, digest }: typeof after) => [
        ...all.flatMap(({ files }) => files.map(({ sha256 }) => sha256)),
        digest,
      ];
      const values = digestsOf(after);
      const replaced = digestsOf(before).map((from, i) => ({ from, to: values[i] ?? from }));
      const metadata = { [provenanceTag]: JSON.stringify(after) };
      for (const { path, declared } of made) {
        if (declared.kind === 'file') continue;
        if (/\.tiff?$/i.test(path)) replaceOnce(path, replaced);
        addMetadata(path, metadata);
        const said = readMetadata(path)[provenanceTag];
        if (said !== undefined && said !== metadata[provenanceTag])
          console.warn(
            `${basename(path)} still says what made its input: write the job's metadata into a COG (docs/steps-inputs-outputs.md)`,
          );
      }
      return read;
    },
  };
}

const windowBytes = 4 * 1024 * 1024;

/** Replaces texts by others as long as they are, each where it is first found. Metadata lie together: what one window lacks begins in it. */
function replaceOnce(path: string, pairs: readonly { readonly from: string; readonly to: string }[]): void {
  const file = openSync(path, 'r+');
  try {
    const { size } = fstatSync(file);
    const window = Buffer.alloc(Math.min(windowBytes, size));
    let left = [...pairs];
    const lookAt = (at: number) => {
      const bytes = readSync(file, window, 0, window.length, at);
      const within = window.subarray(0, bytes);
      left = left.filter(({ from, to }) => {
        const found = within.indexOf(from);
        if (found >= 0) writeSync(file, to, at + found);
        return found < 0;
      });
    };
    // COGs have them first, other GeoTIFFs often last.
    const last = Math.max(0, size - window.length);
    for (const at of new Set([0, last])) if (left.length > 0) lookAt(at);
    if (left.length === pairs.length) return;
    const overlap = pairs[0]?.from.length ?? 0;
    for (let at = window.length - overlap; left.length > 0 && at < last; at += window.length - overlap) lookAt(at);
  } finally {
    closeSync(file);
  }
}
