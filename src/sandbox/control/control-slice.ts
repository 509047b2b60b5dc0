import { Router } from 'express';
import { bundler, type BundleOptions } from '../bundles/make-bundle.ts';
import type { MarketplaceStores } from '../marketplace/marketplace-slice.ts';
import type { Services, Slice } from '../slices.ts';
import type { CatalogStores } from '../stac/catalog-slice.ts';
import { Faults } from './faults.ts';
import { requireAdmin, requireOwnHost, requireOwnOrigin } from './guards.ts';
import { RateLimit } from './rate-limit.ts';
import { controlRoutes, type ControlOptions } from './routes.ts';

export interface ControlStores {
  readonly faults: Faults;
  readonly rateLimit: RateLimit;
}

type Needs = Omit<ControlOptions, 'bundle' | 'clock' | 'items' | 'publicUrl' | keyof ControlStores> &
  Pick<BundleOptions, 'uploadSessions' | 'files' | 'redact'> &
  Pick<CatalogStores, 'catalog'>;

/** Opens what developers control: faults, the rate limit, and the calls below `/sandbox`. */
export function openControl(services: Services, { events }: MarketplaceStores): Slice<ControlStores, Needs> {
  const { config, database, clock, confinement, folders, publicUrl, machineNow } = services;
  const faults = new Faults(database, events);
  const rateLimit = new RateLimit(database, machineNow);
  return {
    stores: { faults, rateLimit },
    topics: [['launches', ['faults', 'clock_offsets']]],
    routes(needs) {
      const { items } = needs.catalog;
      const { blobDir, workDir } = folders;
      const bundle = bundler({ ...needs, config, faults, items, confinement, blobDir, workDir });
      return Router({ caseSensitive: true }).use(
        '/sandbox',
        requireOwnHost(publicUrl),
        requireOwnOrigin(publicUrl),
        requireAdmin(config.adminKey),
        controlRoutes({ ...needs, clock, faults, rateLimit, items, publicUrl, bundle }),
      );
    },
    forget: () => faults.clear(),
    afterForget: () => rateLimit.clear(),
  };
}
