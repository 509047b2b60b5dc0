import { KitError, type WireProfile } from '../../contract/index.ts';
import type { Launch } from '../launch/launch-store.ts';
import type { RunInput } from '../processing/run-input.ts';

/**
 * Keeps one user's uploads from another. The app asks the platform by its own API key, which may read the uploads of all
 * users: so the app itself looks whose they are.
 */
export interface OwnUploads {
  /** False for the collection of another user's uploads. */
  mayUse(launch: Pick<Launch, 'user'> | null, collectionId: string): boolean;
  /** Throws `KitError` (403) if one of the collections is of another user's uploads. */
  requireOwn(launch: Pick<Launch, 'user'> | null, used: RunInput | readonly string[]): void;
}

/** `isSeparate` false: the platform separates its users itself. */
export function createOwnUploads(profile: Pick<WireProfile, 'uploadsCollection'>, isSeparate: boolean): OwnUploads {
  // The name of the collection before and after the user's id.
  const [before = '', after = ''] = profile.uploadsCollection('\n').split('\n');
  const isOfUploads = (id: string) =>
    before + after !== '' && id.length >= before.length + after.length && id.startsWith(before) && id.endsWith(after);
  const mayUse: OwnUploads['mayUse'] = (launch, id) => {
    if (!isSeparate || !isOfUploads(id)) return true;
    const userId = launch?.user.id;
    return userId !== undefined && id === profile.uploadsCollection(userId);
  };
  return {
    mayUse,
    requireOwn(launch, used) {
      const foreign = collectionsOf(used).find((id) => !mayUse(launch, id));
      if (foreign !== undefined)
        throw new KitError(
          'uploads_of_another_user',
          `the collection ${JSON.stringify(foreign.slice(0, 100))} holds the uploads of another user; choose items of the catalog, or your own uploads`,
          { status: 403 },
        );
    },
  };
}

function collectionsOf(used: RunInput | readonly string[]): string[] {
  if ('type' in used) {
    const sources = used.type === 'named' ? Object.values(used.inputs) : [used];
    return sources.flatMap((source) =>
      source.type === 'platform' ? source.items.map(({ collectionId }) => collectionId) : [],
    );
  }
  return [...used];
}
