/** True for a word that chooses the grid by the size of its pixels, and false for the name of a band. */
export const isSizeWord = (grid: string): boolean => grid === 'finest' || grid === 'coarsest';
