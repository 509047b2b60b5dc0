import * as z from 'zod';

/** Spec 3.1. */
export const operationStatuses = ['REQUESTED', 'APPROVED', 'REJECTED', 'EXPIRED'] as const;
/** The states of an operation (spec 3.1). */
export const operationStatus = z.enum(operationStatuses);
/** The status of an operation (spec 3.1). */
export type OperationStatus = z.infer<typeof operationStatus>;

/** The user's decision, or the end of its time. */
export type Decision = Exclude<OperationStatus, 'REQUESTED'>;

/** Spec 3.1: what may follow what. APPROVED, REJECTED and EXPIRED are where polling stops. */
export const operationTransitions: Readonly<Record<OperationStatus, readonly OperationStatus[]>> = {
  REQUESTED: ['APPROVED', 'REJECTED', 'EXPIRED'],
  APPROVED: [],
  REJECTED: [],
  EXPIRED: [],
};

/** True where polling stops (spec 3.1). */
export function isDecided(status: OperationStatus): status is Decision {
  return operationTransitions[status].length === 0;
}
