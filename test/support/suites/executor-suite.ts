import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { AppDefinition } from '../../../src/app/definition/app-definition.ts';
import type { StepExecutor } from '../../../src/app/processing/step-executor.ts';
import badSteps from '../bad-steps.ts';
import { geoTiff } from '../geotiff.ts';
import { startStepHost } from '../step-host.ts';
import toySteps from '../toy-steps/app.ts';

const synthetic = { type: 'synthetic', size: 64 } as const;
const never = new AbortController().signal;

export interface ExecutorSuite {
  /** Starts the executor for steps of a definition. */
  readonly start: (definition: AppDefinition) => Promise<StepExecutor>;
  /** Resolves when nothing of the last run is left. */
  readonly untilGone: () => Promise<void>;
  /** Tags of the tests. Default: none. */
  readonly tags?: readonly string[];
}

/** What every executor does: the results and failures of a step are those of this machine. */
export function executorSuite(title: string, { start, untilGone, tags = [] }: ExecutorSuite): void {
  describe(title, { tags: [...tags] }, () => {
    test('the same bytes, picture, facts and provenance as on this machine', async () => {
      const tiff = geoTiff({ width: 50, height: 40, value: (x, y) => x + 10 * y });
      const outcomes = [];
      for (const executor of [undefined, await start(toySteps)]) {
        const { host, inputDir, workFolder } = await startStepHost({
          definition: toySteps,
          ...(executor && { executor }),
        });
        // A name of which a shell or a URL could make something else.
        const path = "a b%20'$HOME_B4.tif";
        await writeFile(join(inputDir, path), tiff);
        const { outputs, result, provenance, usage } = await host.run(
          {
            ...{ owner: 'tester', stepId: 'multiply', stepVersion: host.find('multiply').version },
            ...{ parameters: { factor: 3 }, input: { type: 'local', path }, workFolder },
            run: { id: 'a-run', claim: 1 },
          },
          { signal: never, onProgress: () => {} },
        );
        expect(usage.cpuSeconds).toBeGreaterThan(0);
        expect(usage.peakMemoryBytes).toBeGreaterThan(20 * 2 ** 20);
        expect(usage.bytesIn).toBe(tiff.length);
        const files = await Promise.all(outputs.map(async (output) => readFile(output.path)));
        outcomes.push({ files, facts: outputs.map(({ path: _here, ...facts }) => facts), result, provenance });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
    });

    test('several outputs of a synthetic input', async () => {
      const { run } = await startStepHost({ definition: toySteps, executor: await start(toySteps) });
      const { outputs } = await run('classify', synthetic);
      expect(outputs.length).toBeGreaterThan(0);
      for (const { sizeBytes } of outputs) expect(sizeBytes).toBeGreaterThan(0);
    });

    test.each([
      ['greedy', 'job_memory_exceeded'],
      ['wordy', 'job_disk_exceeded'],
      ['endless', 'job_timeout'],
      ['crashing', 'job_crashed'],
      ['throwing', 'job_failed'],
      ['silent', 'step_broke_its_declaration'],
      ['wrong-bands', 'step_broke_its_declaration'],
    ])('%s fails as %s', async (stepId, code) => {
      const { run } = await startStepHost({
        definition: badSteps,
        executor: await start(badSteps),
        limits: { timeoutMs: 8_000, memoryBytes: 400 * 2 ** 20, diskBytes: 50 * 2 ** 20 },
      });
      await expect(run(stepId, synthetic)).rejects.toMatchObject({ code });
      await untilGone();
    });

    test('progress and printed lines come', async () => {
      const { host, workFolder } = await startStepHost({ definition: badSteps, executor: await start(badSteps) });
      const printed: string[] = [];
      const onProgress = vi.fn<() => void>();
      await host.run(
        {
          ...{ owner: 'tester', stepId: 'talkative', stepVersion: '1.0.0', parameters: {} },
          ...{ input: synthetic, workFolder },
        },
        { signal: never, onProgress, onPrinted: (line) => printed.push(line) },
      );
      expect(onProgress).toHaveBeenCalled();
      expect(printed[0]).toBe('one line in red and a bell');
      expect(printed).toContain('line 7');
    });

    test('a cancel ends it there, with the reason', async () => {
      const { run } = await startStepHost({ definition: badSteps, executor: await start(badSteps) });
      const abort = new AbortController();
      const isBusy = Promise.withResolvers<void>();
      const running = run('cooperative', synthetic, {}, abort.signal, (_fraction, note) => {
        if (note === 'cooperative') isBusy.resolve();
      });
      running.catch(() => {});
      await isBusy.promise;
      abort.abort(new Error('enough'));
      await expect(running).rejects.toThrow('enough');
      await untilGone();
    });
  });
}
