import { containerOf } from '../steps/command.ts';
import type { AnyStep } from '../steps/step.ts';
import { batteryOf, casesOf } from '../testing/step-battery/index.ts';
import { KitError } from '../contract/index.ts';
import { confinementSettings, confinementVariables } from '../child/index.ts';
import * as z from 'zod';
import { wrongArguments } from './arguments.ts';
import { defineCommand } from './command.ts';
import { confine } from './confine.ts';
import { loadMyApp } from './my-app.ts';
import { kitCommand, messageOf } from '../files/index.ts';

const usage = `usage: ${kitCommand} test-step [ID] [options]: runs the step tests

  ID             Step of your app (default: every step that has cases)
  --bail         Stop at the first failure
  --side PIXELS  Side of the large input, 2048 to 16384 (default: 4096)

Runs the step's own cases (cases.json beside it) and the tests for every step: sizes, types, gaps, places, strips, a
cancel, a full disk, memory, its estimate. Exits 0 only if all of them pass.`;

export default defineCommand(import.meta, {
  usage,
  allowPositionals: true,
  options: { bail: { type: 'boolean', default: false }, side: { type: 'string', default: '4096' } },
  async run({ values, positionals }) {
    const largeSide = Number(values.side);
    if (!Number.isInteger(largeSide) || largeSide < 2_048 || largeSide > 16_384)
      throw wrongArguments(`--side ${values.side} must be a whole number from 2048 to 16384`, usage);
    const definition = await loadMyApp();
    const unknown = positionals.find((id) => !definition.steps.some((step) => step.id === id));
    if (unknown !== undefined)
      throw wrongArguments(
        `your app has no step ${unknown}; its steps are ${definition.steps.map(({ id }) => id).join(', ')}`,
        usage,
      );
    const chosen = definition.steps.filter(({ id, cases }) =>
      positionals.length > 0 ? positionals.includes(id) : cases,
    );
    if (chosen.length === 0)
      throw new KitError('no_cases', 'no step of your app has cases: npm run new-step writes some');
    const read = z.object(confinementVariables).parse(process.env);
    const confinement = confine(confinementSettings(process.env, read), []);
    let [passed, failed, left] = [0, 0, 0];
    steps: for (const step of chosen) {
      console.log(step.id);
      const elsewhere = workedElsewhere(step);
      if (elsewhere !== null) {
        console.log(`  skipped: ${elsewhere}, which a battery does not have: prove it by a run`);
        continue;
      }
      const checks = batteryOf({
        definition,
        stepId: step.id,
        cases: casesOf(step),
        confinement: () => confinement,
        largeSide,
      });
      /** For each error message, the first check that failed with it and the number of further checks. */
      const said = new Map<string, { first: string; more: number }>();
      for (const { name, run, tookMs, exempt } of checks) {
        if (exempt !== undefined) {
          left += 1;
          console.log(`  exempt  ${name}: ${exempt}`);
          continue;
        }
        const startMs = performance.now();
        const seconds = () => ((tookMs?.() ?? performance.now() - startMs) / 1_000).toFixed(1);
        try {
          await run();
          passed += 1;
          console.log(`  ok    ${name} (${seconds()} s)`);
        } catch (error) {
          failed += 1;
          const why = messageOf(error);
          const same = said.get(why);
          if (same) same.more += 1;
          else {
            said.set(why, { first: name, more: 0 });
            console.log(`  FAIL  ${name}: ${why}`);
          }
          if (values.bail) break steps;
        }
      }
      for (const { first, more } of said.values())
        if (more > 0) console.log(`  FAIL  ${more} more check${more === 1 ? '' : 's'}, with the error of "${first}"`);
    }
    console.log(`${passed} passed, ${failed} failed${left > 0 ? `, ${left} exempt` : ''}`);
    return failed === 0 ? 0 : 1;
  },
});

/** Names the image that does the step's work; null if the step's own process does it. */
function workedElsewhere(step: AnyStep): string | null {
  const container = containerOf(step);
  return container ? `its program runs in the image ${container.image}` : null;
}
