/** The job that runs a step in a child. */
export default new URL('../../app/processing/step-job.ts', import.meta.url);
