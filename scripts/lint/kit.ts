import { namedAssumptions } from './named-assumptions.ts';
import { plainComments } from './plain-comments.ts';

/** oxlint plugin with the kit's rules. */
export default {
  meta: { name: 'kit' },
  rules: { 'named-assumptions': namedAssumptions, 'plain-comments': plainComments },
};
