import type { MarketplaceStores } from '../marketplace/marketplace-slice.ts';
import type { Services, Slice } from '../slices.ts';
import { Operations } from './operations.ts';
import { externalAppRoutes, type ExternalAppOptions } from './routes.ts';

export interface ExternalAppStores {
  readonly operations: Operations;
}

/** Opens the operations of external apps (section 4.8). */
export function openExternalApp(
  { database, clock, profile }: Services,
  { events }: MarketplaceStores,
): Slice<ExternalAppStores, Omit<ExternalAppOptions, 'operations' | 'refusedFields'>> {
  const operations = new Operations(database, clock, events, profile.limits);
  return {
    stores: { operations },
    topics: [['operations', ['operations']]],
    routes: (needs) => externalAppRoutes({ ...needs, operations, refusedFields: profile.refusedFields }),
    forget: () => void database.exec('delete from operations'),
  };
}
