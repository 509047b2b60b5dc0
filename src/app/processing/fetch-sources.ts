import { join } from 'node:path';
import { KitError } from '../../contract/index.ts';
import { FairQueue, type ChildLimits } from '../../child/index.ts';
import { requirePlainFile } from '../../files/index.ts';
import type { ItemFacts } from '../../raster/index.ts';
import type { AnyStep } from '../../steps/step.ts';
import type { FetchOptions, PlatformInput } from './platform-input.ts';
import { chosenInputs, findFiles, kindOf, type InputKind, type RunInput } from './run-input.ts';

/** An input of a run, ready for the step: rasters that the child makes, or files that the host lends to it. */
export interface Source {
  /** The input's, in the declaration. */
  readonly name: string;
  readonly kind: InputKind;
  readonly synthetic: { readonly size: number } | null;
  /** Absolute. */
  readonly paths: readonly string[];
  /** Metadata of the files from their catalog items, one entry per path. Default: none. */
  readonly ofItems?: readonly ItemFacts[];
}

interface FetcherOptions {
  readonly inputDir: string;
  readonly platformInput: PlatformInput;
  /** Time limit of a fetch: that of a step. */
  readonly limits?: ChildLimits;
  /** Fetches at the same time. */
  readonly concurrency: number;
}

/** Returns the function that makes the sources of a run ready in a folder. Owners take turns. */
export function sourceFetcher(options: FetcherOptions) {
  const fetches = new FairQueue(options.concurrency);
  return fetchSources;

  async function fetchSources(
    { owner, input }: { readonly owner: string; readonly input: RunInput },
    step: AnyStep,
    folder: string,
    { signal, onProgress, repeat }: Pick<FetchOptions, 'signal' | 'onProgress' | 'repeat'>,
  ): Promise<Source[]> {
    const chosen = chosenInputs(step, input);
    const fetched = chosen.filter(({ source }) => source.type === 'platform');
    const sources: Source[] = [];
    let bytesTaken = 0;
    let time: ReturnType<typeof inTime> | null = null;
    for (const { name, declared, source } of chosen) {
      const kind = kindOf(declared);
      if (source.type === 'synthetic') sources.push({ name, kind, synthetic: { size: source.size }, paths: [] });
      else if (source.type === 'local')
        sources.push({ name, kind, synthetic: null, paths: await findFiles(options.inputDir, source.path, kind) });
      else {
        const part = fetched.findIndex((chosenInput) => chosenInput.name === name);
        // Fetches have a queue of their own, so that waiting for the platform keeps no step from running.
        const fetch = () => {
          // The wait for this turn does not count.
          time ??= inTime(signal);
          return options.platformInput.fetch(source.items, join(folder, name), {
            kind,
            bytesTaken,
            signal: time.timed,
            repeat,
            onProgress: (fraction) => onProgress((part + fraction) / fetched.length),
          });
        };
        const files = await fetches.run(owner, fetch, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          throw time?.isLate()
            ? new KitError('job_timeout', `the app could not fetch the input within ${options.limits?.timeoutMs} ms`, {
                status: 422,
              })
            : error;
        });
        const paths = files.map(({ path }) => path);
        for (const path of paths) bytesTaken += await requirePlainFile(path);
        sources.push({ name, kind, synthetic: null, paths, ofItems: files.map(({ ofItem }) => ofItem) });
      }
    }
    return sources;
  }

  /** Fetching takes as long as a step may, and no longer. */
  function inTime(signal: AbortSignal): { timed: AbortSignal; isLate: () => boolean } {
    const timeoutMs = options.limits?.timeoutMs;
    if (timeoutMs === undefined) return { timed: signal, isLate: () => false };
    const timeout = AbortSignal.timeout(timeoutMs);
    return { timed: AbortSignal.any([signal, timeout]), isLate: () => timeout.aborted };
  }
}
