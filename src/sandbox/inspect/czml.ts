import { notA, nowhere, type Inspector } from './facts.ts';
import { readJson } from './read-ends.ts';
import { isRecord } from '../../files/index.ts';

/** A CZML document: an array of packets, the first of which is the document with its version. */
export const inspectCzml: Inspector = async ({ path }) => {
  const packets = await readJson(path, 'CZML document');
  if (!Array.isArray(packets) || !packets.every(isRecord)) throw notA('CZML document');
  const [first] = packets;
  if (first?.['id'] !== 'document' || typeof first['version'] !== 'string')
    throw notA('CZML document: its first packet must be the document, with a version');
  return { kind: 'czml', mediaType: 'application/json', ...nowhere };
};
