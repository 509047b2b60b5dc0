/** Closing table of a test run: what was skipped, why, and how to have it. A skip without a reason fails the run. */
import { appendFileSync } from 'node:fs';
import { isAll, isRest, onlyInAll } from './tags.ts';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

export default class ClosingTable implements Reporter {
  #isFiltered = false;
  /** File that `.ci/run` reads the counts and the failed tests from. Vitest runs inside tests must not write to it. */
  readonly #counts = process.env['TEST_COUNTS'];

  constructor() {
    delete process.env['TEST_COUNTS'];
  }

  onInit({ config }: Vitest): void {
    this.#isFiltered = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const tests = modules.flatMap((one) => [...one.children.allTests()]);
    const inState = (state: string) => tests.filter((one) => one.result().state === state);
    // `npm test` leaves out tests with the tag, and `TEST_ALL=rest` leaves out tests without it.
    const isLeftOut = (one: TestCase) => {
      const isTagged = one.options.tags?.includes(onlyInAll) ?? false;
      return isRest ? !isTagged : !isAll && isTagged;
    };
    const isExplained = (one: TestCase) => one.meta().skipped !== undefined || this.#isFiltered || isLeftOut(one);
    const skipped = inState('skipped').filter((one) => !isExplained(one) || one.meta().skipped);
    const rows = new Map<string, { remedy: string; tests: TestCase[] }>();
    for (const test of skipped) {
      const { why, remedy } = reasonOf(test);
      const row = rows.get(why) ?? { remedy, tests: [] };
      row.tests.push(test);
      rows.set(why, row);
    }
    const left = inState('skipped').length - skipped.length;
    if (left > 0)
      console.log(
        `\n${left} tests of these files, and more files, ${isRest ? 'run in npm test' : 'run only in npm run test:all'}.`,
      );
    if (rows.size > 0) {
      console.log(`\n${skipped.length} tests skipped:`);
      for (const [why, row] of rows) {
        const files = [...new Set(row.tests.map((one) => one.module.relativeModuleId))];
        console.log(
          `  ${String(row.tests.length).padStart(4)}  ${why}\n        to run them: ${row.remedy}\n        ${files.join(', ')}`,
        );
      }
    }
    const unexplained = skipped.filter((one) => reasonOf(one) === unknown);
    if (unexplained.length > 0) {
      console.log(`\nNo reason is given for ${unexplained.map((one) => one.fullName).join('; ')}`);
      process.exitCode = 1;
    }
    const broken = modules.filter((one) => one.state() === 'failed' && one.errors().length > 0).length + errors.length;
    const failed = inState('failed').length + broken + unexplained.length;
    const line = `${inState('passed').length} passed, ${failed} failed`;
    console.log(`\n${line}`);
    const failures = inState('failed').map(
      (one) => `${one.module.relativeModuleId} > ${one.fullName}: ${one.result().errors?.[0]?.message.split('\n')[0]}`,
    );
    if (this.#counts) appendFileSync(this.#counts, [line, ...failures, ''].join('\n'));
  }
}

const unknown = { why: 'no reason is given', remedy: 'give one (test/support/needs.ts)' };

function reasonOf(test: TestCase): { why: string; remedy: string } {
  const result = test.result();
  const note = result.state === 'skipped' ? result.note : undefined;
  return test.meta().skipped ?? (note === undefined ? unknown : { why: note, remedy: 'see the test' });
}
