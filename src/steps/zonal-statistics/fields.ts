/** Fields of the areas and of their table, with the type of each. */
export const fields = {
  zone: 'string',
  band: 'string',
  mean: 'real',
  min: 'real',
  max: 'real',
  stdDev: 'real',
  sum: 'real',
  count: 'real',
  p10: 'real',
  p25: 'real',
  median: 'real',
  p75: 'real',
  p90: 'real',
  majority: 'real',
  variety: 'integer',
} as const;
/** Fields of the table of classes, with the type of each. */
export const classFields = { zone: 'string', band: 'string', value: 'real', count: 'real', share: 'real' } as const;
