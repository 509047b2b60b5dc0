import { Router } from 'express';
import type { MarketplaceStores } from '../marketplace/marketplace-slice.ts';
import type { Services, Slice } from '../slices.ts';
import type { CatalogStores } from '../stac/catalog-slice.ts';
import { Faults } from '../call/faults.ts';
import { requireAdmin, requireOwnHost, requireOwnOrigin } from '../call/guards.ts';
import { RateLimit } from '../call/rate-limit.ts';
import { controlRoutes, type ControlOptions } from './routes.ts';

export interface ControlStores {
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
}

type Needs = Omit<ControlOptions, 'clock' | 'items' | 'publicUrl' | 'admin' | keyof ControlStores> &
  Pick<CatalogStores, 'catalog'>;

/** Opens what developers control: faults, the rate limit, and the calls below `/sandbox`. */
export function openControl(services: Services, { events }: MarketplaceStores): Slice<ControlStores, Needs> {
  const { config, database, clock, publicUrl, machineNow } = services;
  const faults = new Faults(database, events);
  const rateLimit = new RateLimit(database, machineNow);
  return {
    stores: { faults, rateLimit },
    topics: [['launches', ['faults', 'clock_offsets']]],
    routes(needs) {
      const { items } = needs.catalog;
      return Router({ caseSensitive: true }).use(
        '/sandbox',
        requireOwnHost(publicUrl),
        requireOwnOrigin(publicUrl),
        controlRoutes({ ...needs, clock, faults, rateLimit, items, publicUrl, admin: requireAdmin(config.adminKey) }),
      );
    },
    forget: () => faults.clear(),
    afterForget: () => rateLimit.clear(),
  };
}
