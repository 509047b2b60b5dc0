import { defineApp } from '../../../src/app/definition/app-definition.ts';
import classify from './classify/index.ts';
import multiply from './multiply/index.ts';

export default defineApp({
  module: import.meta.url,
  id: 'toys',
  name: 'toys',
  description: 'Steps of a test.',
  steps: [multiply, classify],
});
