/** What a step that does nothing has used. */
export const noUsage = { cpuSeconds: 0, peakMemoryBytes: 0, place: 'here', stepSeconds: 0, bytesIn: 0 };
