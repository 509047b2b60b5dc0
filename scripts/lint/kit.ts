import { namedAssumptions } from './named-assumptions.ts';

/** oxlint plugin with the kit's rules. */
export default {
  meta: { name: 'kit' },
  rules: { 'named-assumptions': namedAssumptions },
};
