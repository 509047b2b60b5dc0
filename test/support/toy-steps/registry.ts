import classify from './classify/index.ts';
import multiply from './multiply/index.ts';

export const steps = [multiply, classify];
