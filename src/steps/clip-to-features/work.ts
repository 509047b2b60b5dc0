import { cutTo } from '../clip/cut.ts';
import { placeZones } from '../raster.ts';
import { KitError, type Features, type StepJob } from '../step-kit.ts';

interface Parameters {
  readonly field: string;
  readonly value: string;
  readonly crs?: string | undefined;
  readonly outside?: number | undefined;
}

interface Job extends Omit<StepJob<Parameters>, 'inputs'> {
  readonly inputs: { readonly features: Features };
}

export default async function work(job: Job): Promise<void> {
  const { parameters, inputs, workFolder } = job;
  const { field, value, crs: system } = parameters;
  const known = inputs.features.onlyLayer().fields.getNames();
  if (field !== '' && !known.includes(field))
    throw new KitError(
      'unknown_field',
      `the features have no field ${JSON.stringify(field)}; they have ${known.join(', ')}`,
      { status: 422 },
    );
  return cutTo(job, (source) => {
    const zones = placeZones(inputs.features.datasets[0]!, source, {
      label: field,
      crs: system,
      folder: workFolder,
    });
    const chosen = zones.filter(({ label }) => field === '' || label === value);
    if (chosen.length === 0)
      throw new KitError('no_feature', `no feature has the value ${JSON.stringify(value)} in the field ${field}`, {
        status: 422,
      });
    return chosen.map(({ rings }) => rings);
  });
}
