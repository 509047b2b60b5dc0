import { notA, nowhere, type Inspector } from './facts.ts';
import { readEnds } from './read-ends.ts';

/** ISO 32000-1, 7.5: a header, at least one indirect object, a trailer or a cross-reference stream, and the end marker. */
export const inspectPdf: Inspector = async ({ path }) => {
  const { start, end } = await readEnds(path, 64 * 1024);
  const isPdf =
    /%PDF-[12]\.\d/.test(start.subarray(0, 1024).toString('latin1')) &&
    /\b\d+ \d+ obj\b/.test(start.toString('latin1')) &&
    /\b(trailer|startxref)\b/.test(end.toString('latin1')) &&
    end.subarray(-1024).includes('%%EOF');
  if (!isPdf) throw notA('PDF');
  return { kind: 'pdf', mediaType: 'application/pdf', ...nowhere };
};
