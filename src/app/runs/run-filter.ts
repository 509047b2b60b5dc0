import { didYouMean } from '../../contract/did-you-mean.ts';
import { KitError } from '../../contract/index.ts';
import { runStates, type RunState } from './run-state.ts';
import type { RunFilter } from './run.ts';

const names = ['state', 'code', 'step', 'owner', 'worker', 'since'];
const unitsMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const bad = (message: string) => new KitError('bad_filter', `filter ${message}`, { status: 400 });

/** Reads `state=FAILED,code=disk_full,since=2h`. Throws `KitError` (`bad_filter`) with what would be right. */
export function readFilter(text: string, nowMs: number): RunFilter {
  const given = new Map<string, string>();
  for (const part of text.split(',')) {
    const [name = '', ...rest] = part.split('=');
    const value = rest.join('=').trim();
    if (!names.includes(name.trim()) || value === '')
      throw bad(`${part}: give ${names.join('=..., ')}=...${didYouMean(name.trim(), names)}`);
    given.set(name.trim(), value);
  }
  const state = given.get('state');
  const knownState = runStates.find((known): known is RunState => known === state);
  if (state !== undefined && !knownState) throw bad(`state=${state}: it is one of ${runStates.join(', ')}`);
  const since = given.get('since');
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(since ?? '') ?? [];
  if (since !== undefined && count === undefined) throw bad(`since=${since}: give a time such as 90s, 30m, 2h or 7d`);
  const [code, stepId, owner, worker] = ['code', 'step', 'owner', 'worker'].map((name) => given.get(name));
  return {
    ...(knownState && { state: knownState }),
    ...(code !== undefined && { code }),
    ...(stepId !== undefined && { stepId }),
    ...(owner !== undefined && { owner }),
    ...(worker !== undefined && { worker }),
    ...(count !== undefined && { sinceMs: nowMs - Number(count) * (unitsMs[unit] ?? 0) }),
  };
}
