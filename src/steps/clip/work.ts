import { placeArea } from '../raster.ts';
import { polygonsOf, type Area, type StepJob } from '../step-kit.ts';
import { cutTo } from './cut.ts';

interface Parameters {
  readonly area: Area;
  readonly outside?: number | undefined;
}

export default (job: StepJob<Parameters>): Promise<void> =>
  cutTo(job, (source) => [placeArea(polygonsOf(job.parameters.area), source, job.workFolder)]);
