import { writeFileSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { assumedLimits, type Content } from '../../src/contract/index.ts';
import {
  choosePartSize,
  uploadFile,
  type CompletionFacts,
  type UploadOptions,
  type UploadProgress,
} from '../../src/app/upload/uploader.ts';
import { identityOf } from '../../src/files/index.ts';
import { createPlatformClient, PlatformError } from '../../src/platform-client/index.ts';
import { fetchedDigest } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { slowly } from '../support/slowly.ts';
import { apiKey, approvedOperation, someBytes, startSandbox, type TestSandbox } from '../support/sandbox.ts';

const partSizeBytes = 1000;
const bytes = someBytes(4500);

async function start(sandbox?: TestSandbox) {
  const platform = sandbox ?? (await startSandbox());
  const { launchId, token, operationId } = await approvedOperation(platform);
  const path = join(await testFolder(), 'output.tif');
  await writeFile(path, bytes);
  const client = createPlatformClient({ baseUrl: platform.url, apiKey, retry: { minDelayMs: 5, maxDelayMs: 20 } });
  const calls = client.launch({ read: async () => ({ token, expiresAtMs: null }), write: async () => {} });
  const saved: UploadProgress[] = [];
  /** Bodies of the completions that were sent, and the refusals that were told. */
  const completions: object[] = [];
  const refusals: unknown[] = [];
  const upload = (
    resume: UploadProgress | null = null,
    signal = new AbortController().signal,
    facts: CompletionFacts = {},
  ) =>
    uploadFile(
      { operationId, path, sizeBytes: bytes.length, fileName: 'output.tif', sourceType: 'UNKNOWN', facts, resume },
      {
        calls: {
          ...calls,
          completeUpload: (completion, options) => {
            completions.push(completion);
            return calls.completeUpload(completion, options);
          },
        },
        onFactsRefused: (error) => refusals.push(error),
        limits: assumedLimits,
        partSizeBytes,
        save: async (progress) => void saved.push(progress),
        onProgress: () => {},
        signal,
      },
    );
  const parts = async () =>
    (await platform.trace(launchId))
      .filter(({ endpoint }) => endpoint === 'upload.chunk')
      .map(({ detail, status, delivered }) => [detail['partNumber'], delivered ? status : null]);
  const fault = (endpoint: string, effect: object, more: object = {}) =>
    platform.control('POST', 'faults', { launchId, endpoint, effect, ...more });
  return { platform, launchId, upload, saved, parts, fault, path, operationId, completions, refusals };
}

test('an output that changes while its last part is read is not delivered', async () => {
  const path = join(await testFolder(), 'output.tif');
  await writeFile(path, someBytes(600_000));
  const identity = identityOf(await stat(path));
  const received: number[] = [];
  const calls = slowly({
    initiateUpload: async () => ({ uploadId: 'u', key: 'k' }),
    uploadChunk: async ({ content }: { content: Content }) => {
      for await (const part of content.open()) received.push(part.length);
    },
    completeUpload: async () => ({ fileId: 'f' }),
  }) as unknown as UploadOptions['calls'];
  const uploaded = uploadFile(
    { operationId: 'o', path, sizeBytes: 600_000, fileName: 'a.tif', sourceType: 'UNKNOWN', resume: null, identity },
    {
      ...{ calls, limits: assumedLimits, partSizeBytes: 600_000, save: async () => {} },
      signal: new AbortController().signal,
      // Another process writes the file after the first bytes of the part.
      onProgress: () => writeFileSync(path, someBytes(600_000, 9)),
    },
  );
  await expect(uploaded).rejects.toMatchObject({ code: 'output_changed' });
  expect(received.reduce((sum, size) => sum + size, 0)).toBeLessThan(600_000);
});

test('chunks in order, progress saved before it is relied on, then complete', async () => {
  const { platform, upload, saved, parts } = await start();
  const { fileId, size } = await upload();
  expect(size).toBe(4500);
  expect(await parts()).toEqual([1, 2, 3, 4, 5].map((n) => [n, 200]));
  expect(saved.map(({ acknowledgedParts }) => acknowledgedParts)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(new Set(saved.map(({ uploadId, key }) => uploadId + key)).size).toBe(1);
  const { createHash } = await import('node:crypto');
  expect(await fetchedDigest(platform, fileId)).toBe(createHash('sha256').update(bytes).digest('hex'));
});

describe('the facts of an output', () => {
  const facts = { acquisitionDate: '2002-07-01T12:30:00.000Z', layerProperties: { step: 'ndvi' } };
  const send = (upload: Awaited<ReturnType<typeof start>>['upload'], given: CompletionFacts) =>
    upload(null, new AbortController().signal, given);

  test('are sent with its completion', async () => {
    const { upload, completions, refusals } = await start();
    await send(upload, facts);
    expect(completions).toMatchObject([facts]);
    expect(refusals).toEqual([]);
  });

  test('go once more without the one that the platform refuses', async () => {
    const { upload, completions, refusals } = await start();
    expect((await send(upload, { ...facts, geometry: 'no geometry' })).fileId).toBeTruthy();
    expect(completions).toHaveLength(2);
    expect(completions[1]).toMatchObject(facts);
    expect(completions[1]).not.toHaveProperty('geometry');
    expect(refusals).toMatchObject([{ code: 'validation_failed' }]);
  });

  /** Completes an upload on a platform that refuses the field which `refusedIn` names. Returns the bodies of the completions. */
  async function completionsOf(sent: CompletionFacts, refusedIn: (body: object) => string | undefined) {
    const path = join(await testFolder(), 'output.tif');
    await writeFile(path, bytes);
    const completions: object[] = [];
    const calls = slowly({
      initiateUpload: async () => ({ uploadId: 'u', key: 'k' }),
      uploadChunk: async () => {},
      completeUpload: async (body: object) => {
        completions.push(body);
        const refused = refusedIn(body);
        if (refused === undefined) return { fileId: 'f' };
        const details = [{ path: refused, message: 'is not accepted' }];
        throw new PlatformError('upload.complete', 'validation_failed', 'answered 400', {
          platformStatus: 400,
          details,
        });
      },
    }) as unknown as UploadOptions['calls'];
    const task = { operationId: 'o', path, sizeBytes: 4500, fileName: 'a.tif', sourceType: 'UNKNOWN', resume: null, facts: sent } as const; // oxfmt-ignore
    const { fileId } = await uploadFile(task, {
      ...{ calls, limits: assumedLimits, partSizeBytes, save: async () => {}, onProgress: () => {} },
      signal: new AbortController().signal,
    });
    expect(fileId).toBe('f');
    return completions;
  }

  test('go once more without the field that the platform refuses in part', async () => {
    const [, again, ...more] = await completionsOf(facts, (body) =>
      'layerProperties' in body ? 'layerProperties.step' : undefined,
    );
    expect(again).toMatchObject({ acquisitionDate: facts.acquisitionDate });
    expect(again).not.toHaveProperty('layerProperties');
    expect(more).toEqual([]);
  });

  test('are left out if the platform refuses one field after the other', async () => {
    const all = { ...facts, geometry: 'POINT (1 2)' };
    const completions = await completionsOf(all, (body) =>
      ['geometry', 'acquisitionDate'].find((field) => field in body),
    );
    expect(completions).toHaveLength(3);
    for (const field of Object.keys(all)) expect(completions[2]).not.toHaveProperty(field);
  });

  test('are not blamed for a refusal without them, nor for a failure of the platform', async () => {
    const { upload, completions, refusals, fault } = await start();
    await fault('upload.complete', { status: 400 });
    await expect(send(upload, {})).rejects.toMatchObject({ platformStatus: 400 });
    expect(completions).toHaveLength(1);
    await fault('upload.complete', { status: 400 }, { times: 2 });
    await expect(send(upload, facts)).rejects.toMatchObject({ platformStatus: 400 });
    expect(refusals).toEqual([]);
    completions.splice(1);
    await fault('upload.complete', { status: 503 });
    await send(upload, facts);
    expect(completions.slice(1)).toMatchObject([facts]);
    expect(refusals).toEqual([]);
  });
});

describe('goes on from the first part that was not acknowledged', () => {
  test('after an abort', async () => {
    const { upload, saved, parts, fault } = await start();
    await fault('upload.chunk', { delayMs: 10_000 }, { after: 2 });
    const abort = new AbortController();
    const stopped = upload(null, abort.signal);
    while (saved.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    abort.abort(new Error('the app restarts'));
    await expect(stopped).rejects.toThrow('the app restarts');
    await upload(saved.at(-1) ?? null);
    expect((await parts()).filter(([, status]) => status === 200).map(([n]) => n)).toEqual([1, 2, 3, 4, 5]);
  });

  test('where an acknowledgement was not written down: the same part again is no new one', async () => {
    const { upload, saved } = await start();
    const { fileId } = await upload();
    expect(await upload({ ...saved[0]!, acknowledgedParts: 2 })).toMatchObject({ fileId });
  });

  test('where the platform is further than was written down, or less far', async () => {
    const { upload, saved, parts, fault } = await start();
    await fault('upload.complete', { status: 400 });
    await expect(upload()).rejects.toMatchObject({ platformStatus: 400 });
    const ahead = saved.at(-1)!;
    expect(ahead.acknowledgedParts).toBe(5);
    expect(await upload({ ...ahead, acknowledgedParts: 1 })).toMatchObject({ size: 4500 });
    const second = await start();
    await second.fault('upload.chunk', { status: 400 }, { after: 2 });
    await expect(second.upload()).rejects.toMatchObject({ platformStatus: 400 });
    expect(await second.upload({ ...second.saved.at(-1)!, acknowledgedParts: 4 })).toMatchObject({ size: 4500 });
    expect((await second.parts()).map(([n]) => n)).toEqual([1, 2, undefined, 5, 3, 4, 5]);
    expect((await parts()).length).toBeGreaterThan(5);
  });
});

test('a platform that has every part expects the one after the last: the upload is completed, and none is begun', async () => {
  const path = join(await testFolder(), 'output.tif');
  await writeFile(path, bytes);
  const made: string[] = [];
  const saved: UploadProgress[] = [];
  const calls = {
    initiateUpload: async () => ({ uploadId: String(made.push('initiate')), key: 'k' }),
    uploadChunk: async ({ partNumber }: { partNumber: number }) => {
      made.push(`part ${partNumber}`);
      throw new PlatformError('upload.chunk', 'chunk_out_of_order', 'expected 6', {
        platformStatus: 409,
        expectedPart: 6,
      });
    },
    completeUpload: async () => {
      made.push('complete');
      return { fileId: 'f', size: bytes.length };
    },
  };
  const resume = { uploadId: 'u', key: 'k', partSizeBytes, acknowledgedParts: 4 };
  const file = { path, sizeBytes: bytes.length, fileName: 'output.tif', sourceType: 'UNKNOWN' } as const;
  const { fileId } = await uploadFile(
    { operationId: 'o', ...file, facts: {}, resume },
    {
      calls,
      ...{ limits: assumedLimits, partSizeBytes, signal: new AbortController().signal },
      ...{ onFactsRefused: () => {}, onProgress: () => {}, save: async (progress) => void saved.push(progress) },
    },
  );
  expect([fileId, made]).toEqual(['f', ['part 5', 'complete']]);
  expect(saved.map(({ acknowledgedParts }) => acknowledgedParts)).toEqual([5]);
});

describe('faults', () => {
  test.each<[string, string, object, number]>([
    ['500 at initiate', 'upload.initiate', { status: 500 }, 0],
    ['a lost answer to initiate', 'upload.initiate', { dropResponse: true }, 0],
    ['500 at a chunk', 'upload.chunk', { status: 500 }, 1],
    ['503 with Retry-After at a chunk', 'upload.chunk', { status: 503, retryAfterSeconds: 1 }, 2],
    ['a chunk cut in its middle', 'upload.chunk', { reset: true }, 3],
    ['a lost answer to a chunk', 'upload.chunk', { dropResponse: true }, 4],
    ['500 at complete', 'upload.complete', { status: 500 }, 0],
    ['a completion that fails, and takes the session with it', 'upload.complete', { failWork: true }, 0],
    ['a lost answer to complete', 'upload.complete', { dropResponse: true }, 0],
    ['a cut connection at complete', 'upload.complete', { reset: true }, 0],
  ])('%s: the file is whole, and there is one', async (_name, endpoint, effect, after) => {
    const { platform, launchId, upload, fault } = await start();
    await fault(endpoint, effect, { after });
    const { fileId } = await upload();
    const { createHash } = await import('node:crypto');
    expect(await fetchedDigest(platform, fileId)).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect((await platform.control('GET', 'faults')).faults.map(({ fired }) => fired)).toEqual([1]);
    const { uploads } = await platform.control('GET', `launches/${launchId}`);
    expect(uploads.filter((one) => one.fileId !== null)).toHaveLength(1);
  });

  test('the platform has lost the session: a new one is begun', async () => {
    const { platform, upload, saved } = await start();
    const { rm, readdir } = await import('node:fs/promises');
    await upload({ uploadId: 'lost', key: 'lost', partSizeBytes, acknowledgedParts: 3 });
    expect(saved.map(({ acknowledgedParts }) => acknowledgedParts)).toEqual([0, 1, 2, 3, 4, 5]);
    // It fails on the platform's side at complete: parts cleaned up, session gone, as the spec says.
    const second = await start(platform);
    await second.fault('upload.complete', { delayMs: 3_000 });
    const before = new Set(await readdir(join(platform.dataDir, 'blobs')));
    const uploading = second.upload();
    while (second.saved.length < 6) await new Promise((resolve) => setTimeout(resolve, 5));
    for (const blob of await readdir(join(platform.dataDir, 'blobs')))
      if (!before.has(blob)) await rm(join(platform.dataDir, 'blobs', blob));
    expect(await uploading).toMatchObject({ size: 4500 });
    expect(new Set(second.saved.map(({ uploadId }) => uploadId)).size).toBe(2);
  });

  test("other bytes than those of the upload's start: a new session, never a mixture", async () => {
    const { platform, upload, saved, path, fault } = await start();
    await fault('upload.chunk', { status: 400 }, { after: 3 });
    await expect(upload()).rejects.toMatchObject({ platformStatus: 400 });
    const changed = someBytes(4500, 9);
    await writeFile(path, changed);
    const { fileId } = await upload({ ...saved.at(-1)!, acknowledgedParts: 1 });
    const { createHash } = await import('node:crypto');
    expect(await fetchedDigest(platform, fileId)).toBe(createHash('sha256').update(changed).digest('hex'));
  });

  test('an empty output is refused before anything is sent', async () => {
    const { platform, launchId, operationId } = await start();
    const upload = uploadFile(
      { operationId, path: '/dev/null', sizeBytes: 0, fileName: 'x', sourceType: 'UNKNOWN', resume: null },
      {
        calls: {} as never,
        limits: assumedLimits,
        partSizeBytes,
        save: async () => {},
        onProgress: () => {},
        signal: new AbortController().signal,
      },
    );
    await expect(upload).rejects.toMatchObject({ code: 'empty_output' });
    expect(await platform.trace(launchId)).toHaveLength(1);
  });
});

describe('choosePartSize', () => {
  const mib = 2 ** 20;
  test.each([
    [1, 16 * mib, 16 * mib],
    [160_000 * mib, 16 * mib, 16 * mib],
    [160_001 * mib, 16 * mib, 17 * mib],
    [10_000 * 512 * mib, 16 * mib, 512 * mib],
  ])('%d bytes, %d wanted: %d', (size, wanted, expected) =>
    expect(choosePartSize(size, wanted, assumedLimits)).toBe(expected),
  );

  test('more than the platform takes is refused', () => {
    expect(() => choosePartSize(10_000 * 512 * mib + 1, 16 * mib, assumedLimits)).toThrow(/at most/);
  });
});

describe('parts that something before the platform refuses as too large', () => {
  const upload = async (acceptedBytes: number) => {
    const path = join(await testFolder(), 'output.tif');
    const content = someBytes(600_000);
    await writeFile(path, content);
    const sessions: number[][] = [];
    const calls = {
      initiateUpload: async () => {
        sessions.push([]);
        return { uploadId: `u${sessions.length}`, key: 'k' };
      },
      uploadChunk: async ({ content: part }: { content: Content }) => {
        if (part.sizeBytes > acceptedBytes)
          throw new PlatformError('upload.chunk', 'intermediary_refused', 'answered 413', { platformStatus: 413 });
        sessions.at(-1)!.push(part.sizeBytes);
      },
      completeUpload: async () => ({ fileId: 'f' }),
    };
    const uploaded = uploadFile(
      {
        operationId: 'o',
        path,
        sizeBytes: content.length,
        fileName: 'output.tif',
        sourceType: 'UNKNOWN',
        resume: null,
      },
      {
        ...{
          calls: slowly(calls) as unknown as UploadOptions['calls'],
          limits: assumedLimits,
          partSizeBytes: 512 * 1024,
        },
        ...{ save: async () => {}, onProgress: () => {}, signal: new AbortController().signal },
      },
    );
    return { uploaded, sessions };
  };

  test('go on in a new upload with parts of half the size, as often as it takes', async () => {
    const { uploaded, sessions } = await upload(150_000);
    expect(await uploaded).toEqual({ fileId: 'f' });
    expect(sessions).toEqual([[], [], [131_072, 131_072, 131_072, 131_072, 75_712]]);
  });

  test('end with the reason where even small parts are refused', async () => {
    const { uploaded } = await upload(1_000);
    await expect(uploaded).rejects.toMatchObject({ code: 'intermediary_refused' });
  });
});
