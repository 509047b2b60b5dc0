import type { ErrorCode } from '../error-codes.ts';

/** Permissions of an API key. `files_admin` and `files_upload` are the spec's (section 5). @assumed permission-names: the other two */
export const permissions = ['files_admin', 'files_upload', 'external_app', 'inference'] as const;
export type Permission = (typeof permissions)[number];

/** Who may make the calls of a group (spec 5). */
interface GroupFacts {
  /** Permissions of which the key of a call needs at least one. If the list is empty, every key is accepted. */
  readonly permissions: readonly Permission[];
  /** Code of the answer to a missing or unknown key (section 7). */
  readonly unknownKey: ErrorCode;
}

/** Groups of calls: their sections of the interface, and the key and permission that they need (spec 5). */
export const callGroups = {
  Catalog: { permissions: [], unknownKey: 'unauthorized' },
  Files: { permissions: ['files_admin', 'files_upload'], unknownKey: 'unauthorized' },
  Inference: { permissions: ['inference'], unknownKey: 'unauthorized' },
  'External app': { permissions: ['external_app'], unknownKey: 'authentication_failed' },
} as const satisfies Readonly<Record<string, GroupFacts>>;
export type CallGroup = keyof typeof callGroups;

/** Returns the permissions of which the key of a call needs at least one. If the list is empty, every key is accepted. */
export const neededPermissions = ({
  group,
  permissions: ofCall,
}: {
  readonly group: CallGroup;
  readonly permissions?: readonly Permission[];
}): readonly Permission[] => ofCall ?? callGroups[group].permissions;
