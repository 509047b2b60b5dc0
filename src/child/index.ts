/** Confined processes, for the servers that start them. */
export {
  confinementModes,
  establishConfinement,
  ConfinementError,
  type ConfinementMode,
} from './establish-confinement.ts';
export type { Confinement } from './confinement.ts';
export { confinementSettings, confinementVariables, type ConfinementSettings } from './confinement-settings.ts';
export { FairQueue } from './fair-queue.ts';
export { runInChild, type ChildJobOptions } from './host.ts';
export { FileDigests } from './file-digests.ts';
export { gdalProblem, noChildren } from './no-children.ts';
export { LineSplitter } from './line-splitter.ts';
export { planLending, type LentFile } from './lend-file.ts';
export { ChildPool, PoolBusyError } from './pool.ts';
export { plainText } from './plain-text.ts';
export { isJobFailure, ReportedJobError } from './reported-error.ts';
export { ChildJobError, defaultLimits, limitError, type ChildLimits, type ChildUsage } from './limits.ts';
export type { ChildContext, FailureKind, Job, JobContext } from './protocol.ts';
