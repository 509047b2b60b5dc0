import { wireProfile } from '../index.ts';

/** Differences of your platform's HTTP interface from the contract (docs/wire-profile.md). Empty: there are none. */
export default wireProfile({ name: 'assumed' });
