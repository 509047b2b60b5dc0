import { wireProfile } from '../index.ts';

/** Where your platform's wire differs from the contract's (docs/wire-profile.md). Nothing here: it does not. */
export default wireProfile({ name: 'assumed' });
