import { randomUUID } from 'node:crypto';
import { limits } from '../../contract/index.ts';
import { jsonOf, type RawAnswer } from '../facts.ts';
import { longTexts, NotObserved, type Conversation } from '../target.ts';
import { beginUpload, isOk, needed, nobody, probe, readable, refusal, type Place } from './probe.ts';

/** True for a long text without spaces that is no UUID, such as the id of a request. */
const mayBeToken = (text: string) =>
  /^\S{16,}$/.test(text) && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

const created = (at: Conversation) => ['operation', at, 'create-operation/created'] as const;

export const launchPlace: Place = {
  file: 'contract/calls/create-operation.ts',
  symbol: 'createOperation',
  section: '4.8',
};

/** They need a token, and make an operation. */
export const launch = [
  probe('user-detail', 'launch', launchPlace, async (at) => {
    await at.call('user-detail/of the launch', 'userDetail', { token: await at.token() });
  }),
  probe('create-operation', 'launch', launchPlace, async (at, found) => {
    const token = await at.token();
    const wanted = { name: 'drift', description: 'npm run drift', parameters: { drift: true } };
    const idempotencyKey = randomUUID();
    const first = await at.call('create-operation/created', 'createOperation', {
      token,
      idempotencyKey,
      operation: wanted,
    });
    const again = await at.call('create-operation/idempotency-key', 'createOperation', {
      token,
      idempotencyKey,
      operation: wanted,
    });
    const { createOperation } = at.target.profile.calls;
    const idOf = (answer: RawAnswer) => {
      try {
        return createOperation.decode(jsonOf(answer)).operationId;
      } catch {
        return undefined;
      }
    };
    const [id, second] = [idOf(first), idOf(again)];
    if (id !== undefined && second !== undefined)
      at.note('create-operation/idempotency-key', {
        'the same key': id === second ? 'the same operation' : 'another operation',
      });
    if (id !== undefined) found.operationId = id;
  }),
  probe('operation-refusals', 'launch', launchPlace, async (at, found) => {
    const token = await at.token();
    // A refusal shows a limit only if the platform accepts an operation within the limit.
    needed(found.operationId, ...created(at));
    const operation = (name: string, parameters = {}) => ({
      token,
      idempotencyKey: randomUUID(),
      operation: { name, parameters },
    });
    const refused = { expect: 'refusal' } as const;
    await at.call('operation-refusals/no name', 'createOperation', operation(''), refused);
    await at.call(
      'operation-refusals/operation-name-length',
      'createOperation',
      operation('x'.repeat(limits.operationNameLength + 1)),
      refused,
    );
    await at.call(
      'operation-refusals/operation-parameters-size',
      'createOperation',
      operation('drift', { drift: 'x'.repeat(limits.operationParametersBytes) }),
      refused,
    );
  }),
  probe('get-operation', 'launch', launchPlace, async (at, found) => {
    const token = await at.token();
    const operationId = needed(found.operationId, ...created(at));
    await at.call('get-operation/requested', 'getOperation', { token, operationId });
    await at.call('get-operation/unknown', 'getOperation', { token, operationId: nobody }, { expect: 'refusal' });
    const upload = { operationId, fileName: 'drift.geojson' };
    await beginUpload(at, 'get-operation/upload before the approval', upload, refusal);
  }),
  probe('renew-token', 'launch', launchPlace, async (at) => {
    const token = await at.token();
    const before = Date.now();
    const renewed = await at.call('renew-token/renewed', 'renewToken', { token });
    if (!isOk(renewed)) throw new NotObserved(`renew-token/renewed was answered ${renewed.status}`);
    const { token: next, expiresAt } = readable(() => at.target.profile.calls.renewToken.decode(jsonOf(renewed)));
    const minutes = Math.round((Date.parse(expiresAt ?? '') - before) / 60_000);
    const wanted = limits.tokenLifetimeMs / 60_000;
    // An answer without an end is a fact of the answer.
    if (!Number.isNaN(minutes))
      at.note('renew-token/token-life', {
        'lives on': Math.abs(minutes - wanted) <= 1 ? `${wanted} minutes` : `${minutes} minutes`,
      });
    if (next !== undefined) at.renewed(next);
    // An app that misses the new token goes on with the old one, which soon ends.
    const isMissed =
      next === undefined && longTexts(jsonOf(renewed)).some((text) => text !== token && mayBeToken(text));
    const after = isMissed ? null : await at.call('renew-token/after it', 'userDetail', { token: await at.token() });
    at.note(
      'renew-token/renewed-token',
      {
        'the token after it':
          after === null
            ? 'is in the answer under a name that the wire profile does not read'
            : after.status < 300
              ? 'works'
              : `is refused (${after.status})`,
      },
      'renewToken',
    );
  }),
];
