import { SingleBar } from 'cli-progress';
import type { RunView } from '../../app/runs/run-view.ts';

/** Prints what happens: each state with its time, and progress as a bar in a terminal, as lines elsewhere. */
export interface Report {
  line(text: string): void;
  /** Prints what is new since the last view of the run. */
  run(view: RunView): void;
  end(): void;
}

const plainStep = 0.25;

export function createReport(out: NodeJS.WriteStream): Report {
  const startedMs = performance.now();
  let statesShown = 0;
  let bar: SingleBar | null = null;
  let plainShown = -1;

  const stamp = () => `${((performance.now() - startedMs) / 1000).toFixed(1).padStart(6)} s`;
  const line = (text: string) => {
    endBar();
    out.write(`${stamp()}  ${text}\n`);
  };
  const endBar = () => {
    bar?.stop();
    bar = null;
  };

  function progress({ state, progress: { fraction, bytes } }: RunView): void {
    if (fraction === null || (state !== 'PROCESSING' && state !== 'UPLOADING')) return;
    const amount = bytes ? `${mib(bytes.sent)} of ${mib(bytes.total)} MiB` : '';
    if (out.isTTY) {
      bar ??= startBar(out);
      bar.update(Math.round(fraction * 100), { amount });
    } else if (fraction >= plainShown + plainStep) {
      plainShown = Math.floor(fraction / plainStep) * plainStep;
      line(`  ${state.toLowerCase()} ${Math.round(fraction * 100)} % ${amount}`.trimEnd());
    }
  }

  return {
    line,
    run(view) {
      for (const { state, at } of view.history.slice(statesShown)) {
        line(`${state.padEnd(18)} ${at}`);
        plainShown = -1;
      }
      statesShown = view.history.length;
      progress(view);
    },
    end: endBar,
  };
}

function startBar(out: NodeJS.WriteStream): SingleBar {
  const made = new SingleBar({
    stream: out,
    format: '            [{bar}] {percentage} % {amount}',
    hideCursor: true,
    clearOnComplete: true,
    barsize: 32,
  });
  made.start(100, 0, { amount: '' });
  return made;
}

function mib(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(1);
}
