import { launch } from './probes/launch-probes.ts';
import { delivered, type Probe } from './probes/probe.ts';
import { read } from './probes/read-probes.ts';
import { write } from './probes/write-probes.ts';
import type { Level } from './target.ts';

/** In the order in which they are made: what one comes by the next ones use. */
export const probes: readonly Probe[] = [...read, ...launch, ...write];

/** Objects that a level creates on the platform, described for the person who is asked. */
export const creations: Readonly<Record<Level, string>> = {
  read: 'nothing: it sends GET, and POST to the search',
  launch:
    'one operation named "drift", which nobody needs to decide (up to four more where the platform takes what the kit refuses), and an upload that is begun where it lets that happen before the approval',
  write: `one operation named "drift" and, when you have approved it, three files of ${delivered.length} bytes named drift*.geojson, up to five uploads that are begun and not completed, and one inference job; the interface has no call that takes files away`,
};
