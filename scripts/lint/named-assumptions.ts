import { assumptions } from '../../src/contract/assumptions.ts';
import { probes } from '../../src/drift/probes.ts';

const probeIds: ReadonlySet<string> = new Set(probes.map(({ id }) => id));
/** By the id of an assumption: whether what it says of its probe is so. */
const proven = new Map<string, boolean>(
  assumptions.map(({ id, probe }) => [id, typeof probe !== 'string' || probeIds.has(probe)]),
);

interface Comment {
  readonly value: string;
  readonly loc: { readonly start: { readonly line: number }; readonly end: { readonly line: number } };
}

interface Context {
  readonly sourceCode: { getAllComments(): readonly Comment[] };
  report(problem: { loc: Comment['loc']; messageId: string; data: Readonly<Record<string, string>> }): void;
}

/** Every `@assumed` names an entry of src/contract/assumptions.ts, and that a probe of `npm run drift`. */
export const namedAssumptions = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      unnamed: '@assumed must name an entry of src/contract/assumptions.ts, as "@assumed token-life: ..."',
      unknown: '@assumed {{id}}: src/contract/assumptions.ts has no such entry',
      unproven: '@assumed {{id}}: its entry names a probe that src/drift/probes.ts does not have',
    },
  },
  create: (context: Context) => ({
    Program() {
      // The line of a comment that names one stands for the comment below it.
      let namedAbove = -1;
      for (const { value, loc } of context.sourceCode.getAllComments())
        for (const [, id] of value.matchAll(/@assumed\b(?: ([a-z][a-z0-9-]*))?/g)) {
          const messageId =
            id === undefined ? 'unnamed' : !proven.has(id) ? 'unknown' : proven.get(id) ? null : 'unproven';
          if (messageId === null) namedAbove = loc.end.line;
          if (messageId !== null && loc.start.line !== namedAbove + 1)
            context.report({ loc, messageId, data: { id: id ?? '' } });
        }
    },
  }),
};
