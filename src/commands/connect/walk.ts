import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError, type CatalogItem } from '../../contract/index.ts';
import { content, delivered } from '../../drift/probes/probe.ts';
import { bestOf, leavesOf } from './leaves.ts';
import { again, learnAnswer } from './learn-answer.ts';
import { learnCall } from './learn-call.ts';
import { learnRefusal } from './learn-refusal.ts';
import type { PlatformPlace } from './platform-place.ts';

const nobody = 'connect-nobody-has-this-token-0000000000';
const skip = 'skip';
const [everywhere, always] = [[-180, -90, 180, 90], '1900-01-01T00:00:00Z/2100-01-01T00:00:00Z'];
/** Time for the person's approval. */
const approvalMs = 30 * 60_000;

/** Learns all calls of a reference app, level by level: what reads, what belongs to the launch, what writes. */
export async function walk(place: PlatformPlace): Promise<void> {
  const { dialogue } = place;
  dialogue.say('\n1 of 4  Who launched the app');
  await learnCall(place, 'userDetail', () => ({ token: place.token }));
  await learnErrors(place);
  dialogue.say('\n2 of 4  The catalog');
  await learnCatalog(place);
  dialogue.say('\n3 of 4  The operation');
  await learnRenewal(place);
  const operationId = await learnOperation(place);
  dialogue.say('\n4 of 4  The upload');
  await learnUpload(place, operationId);
  await learnLimits(place);
  // A platform without differences has a profile too.
  place.learned.change({});
  place.learned.save();
}

/** The form of errors, from one that is made on purpose. */
async function learnErrors(place: PlatformPlace): Promise<void> {
  const { learned, dialogue } = place;
  dialogue.say('An error on purpose: a token that nobody has');
  const { answer, body, shown } = await place.send('userDetail', { token: nobody });
  if (answer.status < 400)
    return dialogue.say(`  ${answer.status}: the platform takes any token, so its errors stay unknown`);
  dialogue.say(`  ${answer.status}: ${shown}`);
  const fields = { ...learned.changes.errors?.fields };
  const paths = leavesOf(body).map(({ path }) => path);
  for (const field of ['error', 'code', 'requestId'] as const) {
    if (fields[field] !== undefined || paths.includes(field) || paths.length === 0) continue;
    const [likely] = bestOf(field, paths).paths;
    const chosen = await dialogue.ask({
      about: `errors.fields.${field}`,
      text: {
        error: 'Which field is the message?',
        code: 'Which field is the code?',
        requestId: 'Which field is the id of the request?',
      }[field],
      choices: [
        ...leavesOf(body).map(({ path, value }) => ({ value: path, label: place.shownValue(value) })),
        { value: 'none', label: 'it is not there' },
      ],
      preset: likely ?? 'none',
    });
    if (chosen !== 'none') fields[field] = chosen;
  }
  const expired = await dialogue.ask({
    about: 'errors.codes.token_expired',
    text: 'How does the platform say that a token has expired? Write its word for that, or a status such as 410 if the status alone says it.',
    preset: 'token_expired',
  });
  const isStatus = /^4\d\d$/.test(expired);
  const { codes, statuses } = learned.changes.errors ?? {};
  const errors = {
    ...(Object.keys(fields).length > 0 && { fields }),
    ...(isStatus
      ? { statuses: { ...statuses, [expired]: 'token_expired' as const } }
      : expired !== 'token_expired' && { codes: { ...codes, token_expired: expired } }),
  };
  if (Object.keys(errors).length > 0) learned.change({ errors: { ...learned.changes.errors, ...errors } });
  learned.save();
}

async function learnCatalog(place: PlatformPlace): Promise<void> {
  const { dialogue } = place;
  const collection = await dialogue.ask({
    about: 'collection',
    text: `A collection of the catalog that holds items, or ${skip} if your app reads none.`,
    preset: skip,
  });
  if (collection === skip) return;
  const { items } = await learnCall(place, 'searchItems', () => ({
    collections: [collection],
    bbox: everywhere,
    datetime: always,
    limit: 1,
  }));
  const [item] = items;
  if (!item) return dialogue.say(`  ${collection} has no items, so the call of one item stays as it is`);
  await learnItem(place, collection, item);
}

/** An item is found by its id, or by its title. */
async function learnItem(place: PlatformPlace, collectionId: string, item: CatalogItem): Promise<void> {
  const { learned, dialogue } = place;
  const { answer } = await place.send('getItem', { collectionId, itemId: item.id });
  if (answer.status === 404 && learned.changes.itemId === undefined && typeof item.title === 'string') {
    learned.change({ itemId: 'title' });
    const byTitle = await place.send('getItem', { collectionId, itemId: item.title });
    if (byTitle.answer.status === 200) return dialogue.say('  an item is found by its title');
    learned.change({ itemId: undefined });
  }
  await learnCall(place, 'getItem', () => ({ collectionId, itemId: item.id }));
}

async function learnRenewal(place: PlatformPlace): Promise<void> {
  const { token } = await learnCall(place, 'renewToken', () => ({ token: place.token }));
  if (token === undefined || token === place.token) return;
  place.token = token;
  await learnCall(place, 'userDetail', () => ({ token }));
}

async function learnOperation(place: PlatformPlace): Promise<string> {
  const idempotencyKey = randomUUID();
  const operation = {
    name: 'Connect',
    description: 'A trial of the interface. Approve it.',
    parameters: { step: 'connect' },
  };
  const { operationId } = await learnCall(place, 'createOperation', () => ({
    token: place.token,
    idempotencyKey,
    operation,
  }));
  const first = await learnCall(place, 'getOperation', () => ({ token: place.token, operationId }));
  if (first.status === 'REQUESTED') await approved(place, operationId);
  else if (first.status !== 'APPROVED') throw notApproved(first.status);
  return operationId;
}

async function approved(place: PlatformPlace, operationId: string): Promise<void> {
  const { dialogue, token } = place;
  dialogue.say(`Approve the operation "Connect" in the platform now. Waiting for up to ${approvalMs / 60_000} minutes`);
  for (const giveUpAt = Date.now() + approvalMs; Date.now() < giveUpAt;) {
    await sleep(place.learned.profile.limits.pollIntervalMs.min);
    const seen = await place.send('getOperation', { token, operationId }).catch((error: unknown) => {
      // The next poll asks again.
      if (error instanceof KitError) return null;
      throw error;
    });
    const status = seen?.answer.status ?? 503;
    if (seen === null || status === 429 || status >= 500) continue;
    if (status > 299) {
      await learnRefusal(place, 'getOperation', seen);
      continue;
    }
    const output = await learnAnswer(place, 'getOperation', seen);
    if (output === again) continue;
    // The decoder of the call made it.
    const { status: decision } = output as { status: string };
    if (decision === 'REQUESTED') continue;
    if (decision !== 'APPROVED') throw notApproved(decision);
    dialogue.say('  approved');
    return void place.learned.save();
  }
  throw new KitError('not_connected', 'nobody approved the operation within 30 minutes; run connect again');
}

const notApproved = (status: string) =>
  new KitError(
    'not_connected',
    `the operation is ${status}, so nothing can be uploaded: run connect again, and approve it`,
  );

async function learnUpload(place: PlatformPlace, operationId: string): Promise<void> {
  const { token } = place;
  const { uploadId, key } = await learnCall(place, 'initiateUpload', () => ({
    token,
    upload: { operationId, fileName: 'connect.geojson', sourceType: 'POINT' as const },
  }));
  const chunk = { token, uploadId, key, partNumber: 1, partCount: 1, content: content(delivered) };
  await learnCall(place, 'uploadChunk', () => chunk);
  const optional = { acquisitionDate: '2026-01-01T00:00:00.000Z' };
  const isRefused = () => place.learned.changes.refusedFields?.includes('acquisitionDate') === true;
  const { fileId } = await learnCall(place, 'completeUpload', () => ({
    token,
    completion: {
      ...{ uploadId, key, fileSize: delivered.length, partCount: 1 },
      sourceType: 'POINT' as const,
      ...(isRefused() ? {} : optional),
    },
  }));
  place.dialogue.say(fileId === undefined ? '  the answer names no file' : `  the file is ${fileId}`);
}

/** Numbers that no answer tells. */
async function learnLimits({ learned, dialogue }: PlatformPlace): Promise<void> {
  const { pollIntervalMs, chunkBytes } = learned.profile.limits;
  const number = (text: string) =>
    /^\d{1,7}(\.\d{1,6})?$/.test(text) && Number(text) > 0 ? null : 'must be a number above 0';
  const seconds = await dialogue.ask({
    about: 'limits.pollIntervalMs.min',
    text: 'How many seconds must lie between two polls of an operation?',
    preset: String(pollIntervalMs.min / 1_000),
    check: number,
  });
  const megabytes = await dialogue.ask({
    about: 'limits.chunkBytes',
    text: 'How many megabytes may a chunk have at most?',
    preset: String(chunkBytes < 1e6 ? chunkBytes / 1e6 : Math.floor(chunkBytes / 1e6)),
    check: number,
  });
  const min = Math.max(1, Math.round(Number(seconds) * 1_000));
  const bytes = Math.max(1, Math.round(Number(megabytes) * 1e6));
  const limits = {
    ...learned.changes.limits,
    ...(min !== pollIntervalMs.min && { pollIntervalMs: { min, max: Math.max(min, pollIntervalMs.max) } }),
    ...(Math.floor(bytes / 1e6) !== Math.floor(chunkBytes / 1e6) && { chunkBytes: bytes }),
  };
  if (Object.keys(limits).length > 0) learned.change({ limits });
  learned.save();
}
