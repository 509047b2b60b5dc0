import { isOk } from '../../../sandbox/referee/traced-call.ts';
import type { Observations } from '../../../drift/compare.ts';
import type { Exchange, Level } from '../../../drift/target.ts';
import type { ObservedCall } from './observed-call.ts';

/** Forms of the calls that passed, for drift to compare: the first successful answer of each call. */
export function driftRecordOf(calls: readonly ObservedCall[]): Observations & { readonly level: Level } {
  const exchanges = new Map<string, Exchange>();
  for (const { name, method, path, facts, unreadable, isUnfinished, ...call } of calls)
    if (facts !== null && !isUnfinished && isOk(call) && !exchanges.has(name))
      exchanges.set(name, {
        ...{ name: `observed/${name}`, call: name, method, path, facts, unreadable },
        ...{ requestBody: null, responseBody: '', isOfApp: true },
      });
  const isLaunch = calls.some(({ token }) => token !== null);
  const isUpload = calls.some(({ endpoint }) => endpoint.startsWith('upload.'));
  return { level: isUpload ? 'write' : isLaunch ? 'launch' : 'read', exchanges: [...exchanges.values()], missing: {} };
}
