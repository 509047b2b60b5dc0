import type { StepEstimate } from '../../steps/step.ts';

const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** `12 MB`: two digits are more than an estimate knows. */
function bytesInWords(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${Number((bytes / 1000 ** power).toPrecision(2))} ${units[power]}`;
}

function timeInWords(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} minutes` : `${Number((seconds / 3_600).toPrecision(2))} hours`;
}

/** Describes an estimate for the user who decides on the approval. */
export function estimateInWords({ outputBytes, seconds, memoryBytes }: StepEstimate): string {
  return `About ${bytesInWords(outputBytes)} of output, ${timeInWords(seconds)} of processing and ${bytesInWords(memoryBytes)} of memory.`;
}
