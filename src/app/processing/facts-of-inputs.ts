/** Facts that a result takes from its inputs and its declaration. A step's process loads this too: it imports nothing of the servers. */
import { previewOf, type AnyStep, type OutputDeclaration } from '../../steps/step.ts';
import type { Provenance, ReadFile } from './provenance.ts';
import type { InputSource, ItemReference, RunInput } from './run-input.ts';

/** Times of the inputs in ISO 8601, and the acquisition time of the results. */
export function acquisitionOf(step: Pick<AnyStep, 'acquisition'>, files: readonly Pick<ReadFile, 'observedAt'>[]) {
  const times = files.flatMap(({ observedAt }) => observedAt ?? []).toSorted();
  const [first, last] = [times[0], times.at(-1)];
  return { first, last, acquired: { latest: last, earliest: first, none: undefined }[step.acquisition ?? 'latest'] };
}

/** The sources of all inputs of a run. */
export const sourcesOf = (input: RunInput): readonly InputSource[] =>
  input.type === 'named' ? Object.values(input.inputs) : [input];

/** Items of the platform that a run takes, of all its inputs. */
export const itemsOf = (input: RunInput): ItemReference[] =>
  sourcesOf(input).flatMap((source) => (source.type === 'platform' ? source.items : []));

/** Unit of an output's values, from its style. The style may be a function of the step. An error in it must not prevent the upload. */
export function declaredUnit(
  declared: OutputDeclaration | undefined,
  parameters: Provenance['parameters'],
): string | undefined {
  try {
    return declared && 'preview' in declared ? previewOf(declared, parameters).unit : undefined;
  } catch {
    return undefined;
  }
}
