/** Only for child processes: what made an output, written into it. */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import gdal from 'gdal-async';
import { addMetadata, readMetadata, type Metadata } from '../../raster/metadata.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { MadeOutput } from './check-outputs.ts';
import { fileTags } from './file-tags.ts';
import { hashedInputs, type UnhashedInputs } from './input-digests.ts';
import { makeProvenance, provenanceTag } from './make-provenance.ts';
import type { ProvenanceKnown } from './provenance.ts';

/** Provenance as far as it is known when a step's process starts. */
export interface StampKnown {
  readonly known: ProvenanceKnown;
  readonly inputs: UnhashedInputs;
}

export interface Stamp {
  /**
   * For outputs that are written before the input's digests are known: each stands for itself, as long as it will be.
   * A Cloud Optimized GeoTIFF cannot be given metadata afterwards.
   */
  readonly metadata: Metadata;
  /** Puts the digests in their places. They have the order of the inputs' files. */
  settle(made: readonly MadeOutput[], sha256s: () => Promise<readonly string[]>): Promise<void>;
}

/** Stamp of a trial. Nobody keeps its output. */
export const noStamp: Stamp = { metadata: {}, settle: () => Promise.resolve() };

export function beginStamp({ known, inputs }: StampKnown, step: AnyStep): Stamp {
  const salt = randomBytes(16).toString('hex');
  const placeholder = (name: string) => createHash('sha256').update(`${salt} ${name}`).digest('hex');
  const files = inputs.flatMap((input) => input.files);
  const pending = hashedInputs(
    inputs,
    files.map((_file, i) => placeholder(String(i))),
  );
  const software = { ...known.software, GDAL: gdal.version };
  const tags = fileTags(step, { ...known, software }, pending);
  const before = { ...makeProvenance(known, pending, gdal.version), digest: placeholder('digest') };
  return {
    metadata: { ...tags, [provenanceTag]: JSON.stringify(before) },
    async settle(made, sha256s) {
      const after = makeProvenance(known, hashedInputs(inputs, await sha256s()), gdal.version);
      const digestsOf = ({ inputs: all, digest }: typeof after) => [
        ...all.flatMap((input) => input.files.map(({ sha256 }) => sha256)),
        digest,
      ];
      const values = digestsOf(after);
      const replaced = digestsOf(before).map((from, i) => ({ from, to: values[i] ?? from }));
      const metadata = { ...tags, [provenanceTag]: JSON.stringify(after) };
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
