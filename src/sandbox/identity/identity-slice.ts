import { permissions } from '../../contract/index.ts';
import type { Services, Slice } from '../slices.ts';
import { ApiKeys } from './api-keys.ts';
import { IdentityTokens } from './identity-tokens.ts';
import { Users } from './users.ts';

export interface IdentityStores {
  readonly keys: ApiKeys;
  readonly users: Users;
  readonly tokens: IdentityTokens;
}

/** Opens API keys, users and identity tokens. `madeApiKey` is the key that it created because there was none, else null. */
export function openIdentity({ config, database, clock, signer, profile }: Services): Slice<IdentityStores> & {
  readonly madeApiKey: string | null;
} {
  const keys = new ApiKeys(database, () => clock.now());
  if (config.apiKey !== null) keys.admit(config.apiKey, config.apiKeyPermissions);
  return {
    stores: { keys, users: new Users(database), tokens: new IdentityTokens(database, clock, signer, profile.limits) },
    topics: [
      ['apps', ['users']],
      ['launches', ['tokens']],
    ],
    madeApiKey: keys.list().length === 0 ? keys.create(permissions).apiKey : null,
    forget: () => void database.exec('delete from tokens'),
  };
}
