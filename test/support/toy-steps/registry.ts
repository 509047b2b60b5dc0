import multiply from './multiply/index.ts';

export const steps = [multiply];
