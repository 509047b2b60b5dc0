import { isDeepStrictEqual } from 'node:util';
import type { Bundle, Effect } from '../../sandbox/bundles/bundle.ts';
import type { LaunchVerdict } from '../certify/watched-launch.ts';

/** The first thing that is not as it was; null where all is. `rules`: what the referee says now, to name the call that breaks one. */
export function firstDifference(then: Bundle, now: Bundle, rules: LaunchVerdict['rules'] = []): string | null {
  return (
    differenceOfEffects(then.effects, now.effects) ??
    differenceOfVerdict(then, now, rules) ??
    differenceOfOutputs(then, now)
  );
}

type Output = Bundle['outputs'][number];

/** Calls of one operation, or one upload, come in an order; those of several may come in any. */
const groupOf = ({ operation, upload }: Effect) => upload ?? operation ?? 'the session';

function differenceOfEffects(then: readonly Effect[], now: readonly Effect[]): string | null {
  const [before, after] = [Map.groupBy(then, groupOf), Map.groupBy(now, groupOf)];
  // The earliest of all groups is told: the others may follow from it.
  const found = [...new Set([...before.keys(), ...after.keys()])].flatMap((group) => {
    const [a, b] = [before.get(group) ?? [], after.get(group) ?? []];
    const i = a.findIndex((one, n) => !isDeepStrictEqual(one, b[n]));
    const at = i >= 0 ? i : a.length < b.length ? a.length : -1;
    if (at < 0) return [];
    const place = a[at] ? then.indexOf(a[at]) : now.findIndex((one) => one === b[at]);
    return [{ place, text: `call ${at + 1} of ${group}:\n  then  ${shown(a[at])}\n  now   ${shown(b[at])}` }];
  });
  return found.sort((a, b) => a.place - b.place)[0]?.text ?? null;
}

const shown = (one: Effect | undefined) => (one ? JSON.stringify(one) : 'nothing came');

function differenceOfVerdict(then: Bundle, now: Bundle, rules: LaunchVerdict['rules']): string | null {
  for (const [rule, result] of Object.entries(then.verdict)) {
    if (now.verdict[rule] === result) continue;
    const [violation] = rules.find((one) => one.rule === rule)?.violations ?? [];
    const seen = violation ? `: ${violation.seen}; expected: ${violation.expected}` : '';
    return `rule ${rule}:\n  then  ${result}\n  now   ${now.verdict[rule] ?? 'not judged'}${seen}`;
  }
  return null;
}

/** Drops the field that an older bundle lacks. */
const comparable = (now: Output | undefined, then: Output | undefined): Output | undefined =>
  now && then && then.contentSha256 === undefined ? { ...now, contentSha256: undefined } : now;

function differenceOfOutputs(then: Bundle, now: Bundle): string | null {
  const count = Math.max(then.outputs.length, now.outputs.length);
  for (let i = 0; i < count; i++)
    if (
      !isDeepStrictEqual(
        { contentSha256: undefined, ...then.outputs[i], fileName: null },
        // The name of a delivered file contains identifiers that differ between plays.
        { ...comparable(now.outputs[i], then.outputs[i]), fileName: null },
      )
    )
      return `output ${i + 1}:\n  then  ${JSON.stringify(then.outputs[i] ?? null)}\n  now   ${JSON.stringify(now.outputs[i] ?? null)}`;
  return null;
}
