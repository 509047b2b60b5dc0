import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take minutes, and wait for most of them: begun last, they would be waited for alone. */
const long = [
  'end-to-end/drill',
  'browser/flow',
  'browser/pages',
  'browser/buttons',
  'steps/battery',
  'package/',
  'commands/docs-commands',
  'end-to-end/',
  'browser/',
  'simulated-',
  'commands/tutorial',
  'commands/new-step',
  'drift/',
  'steps/numbers',
  'app/step-host',
  'security/',
  'sandbox/inference',
  'sandbox/uploads',
  'sandbox/spec-departures',
];
const rank = ({ moduleId }: TestSpecification) => {
  const at = long.findIndex((part) => moduleId.includes(part));
  return at < 0 ? long.length : at;
};

export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
