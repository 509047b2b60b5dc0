/** Responses to a renewal: the same token with a later expiry, or a new token (contract, "Tokens"). */
export const renewPolicies = ['extend', 'rotate'] as const;

/** One launch of an app by a user: an external app session in the spec's words (4.8, rule 5). */
export interface Launch {
  readonly id: string;
  readonly appId: string;
  readonly userId: string;
  readonly renewPolicy: (typeof renewPolicies)[number];
  readonly createdAtMs: number;
  /** On its own clock; null while its tokens can live. */
  readonly revokedAtMs: number | null;
}
