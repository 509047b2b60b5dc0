/** For code that a confined process runs. */
export { programPath } from './bubblewrap.ts';
export { describedError } from './described-error.ts';
export { confinedRasterDrivers, rasterDrivers } from './drivers.ts';
export { Defect, kindOfPlainError } from './failure-kind.ts';
export { partOf } from './part-of.ts';
export type { ChildContext, FailureKind, Job, JobContext } from './protocol.ts';
