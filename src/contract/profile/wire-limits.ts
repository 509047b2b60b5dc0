import { limits } from '../limits.ts';

/** Limits of the wire that an app must keep to. Times in milliseconds, sizes in bytes. */
export interface WireLimits {
  /** Time for which an operation waits for its decision (spec 3.1). */
  readonly operationWindowMs: number;
  /** Between two status calls (spec 4.8, rule 2). */
  readonly pollIntervalMs: { readonly min: number; readonly max: number };
  /** Life of an identity token from its launch or its last renewal. */
  readonly tokenLifetimeMs: number;
  /** No renewal carries a token past this age of its launch. */
  readonly tokenLifetimeMaxMs: number;
  /** Time after its end in which a token can still be renewed. */
  readonly tokenRenewalGraceMs: number;
  /** Largest chunk. */
  readonly chunkBytes: number;
  /** Most chunks of one upload. */
  readonly maxPartNumber: number;
  /** Number of the first chunk on the wire: 0 or 1. The app counts from 1. Default: 1. */
  readonly firstPartNumber?: number;
}

/** The limits of spec section 8, and `limits` where it is silent. */
export const assumedLimits: WireLimits = {
  operationWindowMs: limits.operationWindowMs,
  pollIntervalMs: limits.pollIntervalMs,
  tokenLifetimeMs: limits.tokenLifetimeMs,
  tokenLifetimeMaxMs: limits.tokenLifetimeMaxMs,
  tokenRenewalGraceMs: limits.tokenRenewalGraceMs,
  chunkBytes: limits.chunkBytes,
  maxPartNumber: limits.maxPartNumber,
  firstPartNumber: limits.firstPartNumber,
};
