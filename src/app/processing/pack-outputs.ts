import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import { outputsOf, type AnyStep } from '../../steps/step.ts';
import type { Provenance } from './provenance.ts';
import { resultFacts } from './result-facts.ts';
import { stacItem } from './stac-item.ts';
import { tableDescription } from './table-description.ts';
import type { RunOutput } from './take-outputs.ts';

/** Modification time of every entry, so that the same outputs make the same archive. */
const mtime = new Date('1980-01-01T12:00:00Z');

/** Documents beside an output in the archive, by their names: its STAC item if the time of its inputs is known, and the description of a table. */
function documentsOf(step: AnyStep, output: RunOutput, provenance: Provenance): [string, object][] {
  const fileName = basename(output.path);
  const facts = resultFacts(step, { ...output, fileName }, provenance);
  const declared = outputsOf(step).find(([, declaration]) => declaration.fileName === fileName)?.[1];
  const isTable = declared?.kind === 'vector' && /\.csv$/i.test(fileName);
  const { acquisitionDate } = facts;
  return [
    ...(isTable ? [[`${fileName}-metadata.json`, tableDescription(declared, facts)] satisfies [string, object]] : []),
    ...(acquisitionDate === undefined
      ? []
      : [
          [
            `${fileName}.stac.json`,
            // Paths alone: the same outputs make the same archive, whatever the address of the platform.
            stacItem(step, output, provenance, { outputName: fileName, href: `./${fileName}`, id: fileName, madeAt: acquisitionDate, platformUrl: '' }), // oxfmt-ignore
          ] satisfies [string, object],
        ]),
  ];
}

/**
 * Puts a run's outputs into one zip at `path`, and removes them: stored as they are (rasters do not shrink), each with its
 * STAC item, and the provenance of all.
 */
export async function packOutputs(
  step: AnyStep,
  outputs: readonly RunOutput[],
  provenance: Provenance,
  path: string,
  signal: AbortSignal,
): Promise<RunOutput> {
  const archive = new yazl.ZipFile();
  const failed = new Promise<never>((_resolve, reject) => archive.on('error', reject));
  failed.catch(() => {});
  for (const output of outputs) archive.addFile(output.path, basename(output.path), { compress: false, mtime });
  const documents: [string, object][] = [
    ...outputs.flatMap((output) => documentsOf(step, output, provenance)),
    ['provenance.json', provenance],
  ];
  for (const [name, document] of documents)
    archive.addBuffer(Buffer.from(`${JSON.stringify(document, null, 2)}\n`), name, { compress: false, mtime });
  archive.end();
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const counted = new Transform({
    transform(bytes: Buffer, _encoding, done) {
      hash.update(bytes);
      sizeBytes += bytes.length;
      done(null, bytes);
    },
  });
  await Promise.race([pipeline(archive.outputStream, counted, createWriteStream(path), { signal }), failed]);
  for (const output of outputs) await rm(output.path);
  const descriptions = outputs.flatMap((output) => output.descriptions ?? []);
  return { path, sizeBytes, sha256: hash.digest('hex'), ...(descriptions.length > 0 && { descriptions }) };
}
