/** The optional fields of a completion that the app fills (spec 4.4). */
export const completionFields = ['acquisitionDate', 'geometry', 'layerProperties'] as const;
/** Name of one of `completionFields`. */
export type CompletionField = (typeof completionFields)[number];
