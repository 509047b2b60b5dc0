import type { Migration } from '../migration.ts';
import { ownContract } from './own-contract.ts';
import { ownPackages } from './own-packages.ts';
import { ownSteps } from './own-steps.ts';
import { ownTemplates } from './own-templates.ts';

/** In the order of their releases. One that was released stays: a fork may come from any of them. */
export const migrations: readonly Migration[] = [ownSteps, ownTemplates, ownContract, ownPackages];
