import type { IdentityStores } from '../identity/identity-slice.ts';
import type { Services, Slice } from '../slices.ts';
import { Apps } from './apps.ts';
import { LaunchEvents } from './launch-events.ts';
import { Launches } from './launches.ts';

export interface MarketplaceStores {
  readonly apps: Apps;
  readonly events: LaunchEvents;
  readonly launches: Launches;
}

/** Opens the registered apps, their launches, and the events of each launch. */
export function openMarketplace(
  { database, clock, profile }: Services,
  { tokens, users }: IdentityStores,
): Slice<MarketplaceStores> {
  const apps = new Apps(database);
  const events = new LaunchEvents(database, clock);
  const launches = new Launches(database, clock, tokens, apps, users, events, profile.launchTokenField);
  return {
    stores: { apps, events, launches },
    topics: [
      ['apps', ['apps']],
      ['launches', ['launches', 'launch_events']],
    ],
    forget: () => void database.exec('delete from launches; delete from launch_events'),
  };
}
