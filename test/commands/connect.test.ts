/** `connect` learns a foreign platform by answers alone, and the app delivers a file by what it has learned. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { deliver } from '../../src/commands/connect/deliver.ts';
import { answerOf, questionLines, withEscapes } from '../../src/commands/connect/dialogue.ts';
import { learnRefusal, namesIn } from '../../src/commands/connect/learn-refusal.ts';
import { isModuleOf, LearnedProfile, moduleOf } from '../../src/commands/connect/learned-profile.ts';
import { PlatformPlace } from '../../src/commands/connect/platform-place.ts';
import { readRecording } from '../../src/commands/connect/recording.ts';
import { walk } from '../../src/commands/connect/walk.ts';
import { wireProfile, type WireChanges } from '../../src/contract/index.ts';
import { unpaced } from '../../src/drift/target.ts';
import myApp from '../../src/my-app/app.ts';
import { answering } from '../support/answering.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { foreignProfile } from '../support/foreign-profile.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import { strangeProfile } from '../support/strange-profile.ts';
import { onlyInAll } from '../support/tags.ts';

/** A sandbox that speaks as the documents say, and a place that knows nothing of it. */
async function connecting(documents: WireChanges) {
  const sandbox = await startSandbox({ seed: 'demo', profile: wireProfile(documents) });
  const { token } = await sandbox.launch();
  const file = join(await testFolder(), 'profile.json');
  const approveAll = async () => {
    const { operations } = await sandbox.control('GET', 'operations');
    for (const { operationId, status } of operations)
      if (status === 'REQUESTED') await sandbox.control('POST', `operations/${operationId}/approve`);
  };
  const dialogue = answering(documents, {
    others: { collection: 'olinda-coast' },
    onSay: (line) => {
      if (/^Approve|AWAITING_APPROVAL/.test(line)) void approveAll();
    },
  });
  const learned = new LearnedProfile({ name: documents.name }, file, 'marketplace-app-kit');
  const place = new PlatformPlace({ url: sandbox.url, apiKey, token, pace: unpaced, learned, dialogue });
  return { sandbox, place, dialogue, file };
}

/** Every difference of a profile with its value. A field that is only renamed reads as one with a name. */
function differencesOf(value: unknown, path = ''): [place: string, value: unknown][] {
  if (value === null || typeof value !== 'object') {
    const isName = /\.(response|request)\.[^.]+$/.test(path);
    return [[isName ? `${path}.name` : path, value]];
  }
  return Object.entries(value).flatMap(([name, member]) =>
    differencesOf(member, path === '' ? name : `${path}.${name}`),
  );
}

/** Differences that no call of a delivery shows. */
const unseen = /\.values\.(REJECTED|EXPIRED)$|^errors\.statuses|^itemId$/;

describe('ends with a delivered file', { tags: [onlyInAll] }, () => {
  test.each<[string, WireChanges, number]>([
    ['a platform as the contract has it', { name: 'same' }, 1],
    ['every kind of difference at once', strangeProfile, 20],
    ['fifty differences at once', foreignProfile, 50],
  ])('%s', { timeout: 120_000 }, async (_, documents, least) => {
    const { place, dialogue, sandbox, file } = await connecting(documents);
    await walk(place).catch((error: unknown) => {
      throw new Error(dialogue.lines.join('\n'), { cause: error });
    });
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(place.learned.changes);

    const wanted = differencesOf(documents).filter(([where]) => !unseen.test(where));
    expect(wanted.length).toBeGreaterThanOrEqual(least);
    expect(differencesOf(place.learned.changes)).toEqual(expect.arrayContaining(wanted));

    // A launch that nobody has learned from: the app keeps every rule of the flow by the profile alone.
    const { token, launchId } = await sandbox.launch();
    place.token = token;
    const run = await deliver(place, myApp);
    expect(run.state, `${dialogue.lines.join('\n')}\n${JSON.stringify(run.failure)}`).toBe('COMPLETED');
    expect(run.files[0]?.fileId).toEqual(expect.any(String));
    const verdict = await sandbox.control('GET', `launches/${launchId}/verdict`);
    expect(verdict.rules.filter(({ result }) => result === 'failed')).toEqual([]);
    // Tokens and keys are on no screen.
    for (const line of dialogue.lines) expect(line.includes(token) || line.includes(apiKey)).toBe(false);
    if (documents.name !== 'same') return;
    expect(place.learned.changes).toEqual({ name: 'same' });
    // No answer shows these values, so connect always asks for them.
    expect(dialogue.asked.map(({ about }) => about)).toEqual([
      'errors.codes.token_expired',
      'collection',
      'calls.createOperation.optional',
      'calls.initiateUpload.optional',
      'calls.completeUpload.optional',
      'limits.pollIntervalMs.min',
      'limits.chunkBytes',
    ]);
  });
});

test.each([
  ['FastAPI', { detail: [{ loc: ['body', 'title'], msg: 'Field required', type: 'missing' }] }, 'title'],
  ['ASP.NET', { title: 'One or more errors', errors: { Title: ['The Title field is required.'] } }, 'Title'],
  ['JSON:API', { errors: [{ source: { pointer: '/data/kind' }, detail: 'must be one of a, b' }] }, null],
  ['Express with ajv', { message: "must have required property 'jobId'" }, 'jobId'],
  ['Spring', { errors: [{ field: 'fileName', defaultMessage: 'null', message: 'must not be blank' }] }, 'fileName'],
  ['plain', { error: 'operationType is missing' }, 'operationType'],
  ['no name', { error: 'Bad Request' }, null],
])('an error body of %s names its field', (_, body, name) => {
  expect(namesIn(body)[0]?.path ?? null).toBe(name);
});

test.each([
  ['query', { request: { name: { in: 'query', name: 'title' } } }],
  ['header', { request: { name: { in: 'header', name: 'title' } } }],
  ['body', { request: { name: 'title' } }],
])('a field goes into the %s if the error says so', async (part, changes) => {
  const learned = new LearnedProfile({ name: 'a' }, join(await testFolder(), 'profile.json'), 'marketplace-app-kit');
  const dialogue = answering({ name: 'a' }, { others: { 'calls.createOperation.request:title': 'name' } });
  const place = new PlatformPlace({ url: 'http://p', apiKey, token: 'token-1', pace: unpaced, learned, dialogue });
  const body = { detail: [{ loc: [part, 'title'], msg: 'Field required' }] };
  await learnRefusal(place, 'createOperation', {
    answer: { status: 422, headers: {}, body: Buffer.from(JSON.stringify(body)) },
    body,
    shown: '',
  });
  expect(learned.call('createOperation').request).toEqual(changes.request);
});

test('an answer is a number of a choice, a value or the preset', () => {
  const choices = ['a', 'b'].map((value) => ({ value, label: '' }));
  const question = { about: '', text: '', choices, preset: 'b' };
  expect(['1', 'a', '', '3', 'c'].map((line) => answerOf(question, line))).toEqual(['a', 'a', 'b', null, null]);
  expect(answerOf({ ...question, isOpen: true }, 'c')).toBe('c');
  expect(answerOf({ about: '', text: '' }, ' ')).toBeNull();
});

test('a profile as a module says the same', async () => {
  const changes = { ...strangeProfile, name: 'it\'s "q" \\ \u2028' };
  const path = join(await testFolder(), 'profile.ts');
  await writeFile(path, moduleOf(changes, join(projectRoot, 'src/index.ts')));
  const { default: profile } = (await import(path)) as { default: { changes: WireChanges } };
  expect(profile.changes).toEqual(changes);
});

test('a recording offers places and constants, and no token', async () => {
  const path = join(await testFolder(), 'recording.har');
  const token = 'tok_0123456789abcdefghij';
  const entry = (method: string, at: string, body?: object) => ({
    request: { method, url: `https://p.example/base${at}`, ...(body && { postData: { text: JSON.stringify(body) } }) },
  });
  const entries = [
    entry('GET', `/v2/sessions/${token}/user?x=1`),
    entry('POST', `/v2/sessions/${token}/jobs`, { title: 'a', operationType: 'PROCESSING' }),
    entry('GET', `/v2/sessions/${token}/jobs/4711`),
    { request: { method: 'GET', url: 'https://elsewhere.example/v2' } },
  ];
  await writeFile(path, JSON.stringify({ log: { entries } }));
  const recording = await readRecording(path, 'https://p.example/base');
  expect(recording.placesOf('getOperation')).toEqual([
    'GET /v2/sessions/:token/user',
    'GET /v2/sessions/:token/jobs/:operationId',
  ]);
  expect(recording.placesOf('createOperation')).toEqual(['POST /v2/sessions/:token/jobs']);
  expect([recording.constantOf('operationType'), recording.constantOf('other')]).toEqual(['PROCESSING', undefined]);
  await expect(readRecording(path, 'https://other.example')).rejects.toThrow('has no request to https://other.example');
  await writeFile(path, '{}');
  await expect(readRecording(path, 'https://p.example')).rejects.toThrow('must be a HAR file');
});

describe('a platform that differs in unusual ways', () => {
  const secret = { key: 'contract-key-0123456789abcdef', token: 'tokB-9gwjcc7k' };
  const dangerous = '\u001b]0;owned\u0007\u009b31m';

  /** Wraps answers in an object with another `status`, refuses as Spring Boot does, and repeats the key and the token in many places. */
  async function rudePlatform() {
    const seen: string[] = [];
    let isApproved = false;
    const server = createServer((req, res) => {
      const parts: Buffer[] = [];
      req.on('data', (part: Buffer) => parts.push(part));
      req.on('end', () => {
        const { pathname } = new URL(req.url ?? '/', 'http://rude');
        seen.push(`${req.method} ${pathname.replaceAll(secret.token, ':token')}`);
        const body = Buffer.concat(parts).toString('utf8');
        const answer = (status: number, value: unknown) => {
          res.writeHead(status, { 'content-type': 'application/json' });
          res.end(JSON.stringify(value));
        };
        const refuse = (status: number, error: string, field?: string) =>
          answer(status, {
            ...{ timestamp: '2026-11-30T08:00:00Z', status, error, path: req.url },
            ...(field !== undefined && { errors: [{ field, message: `${field} must not be sent ${dangerous}` }] }),
          });
        if (req.headers['authorization'] !== `Apikey ${secret.key}`)
          return req.headers['authorization'] ? refuse(400, 'Malformed JWT') : refuse(401, 'Unauthorized');
        if (!pathname.includes(secret.token)) return refuse(404, 'No such session');
        const whole = (data: unknown) => answer(200, { status: 'success', progress: 0, data });
        if (pathname.endsWith('/detail'))
          return whole({ [secret.key]: 'x', id: 7, note: secret.token, email: dangerous });
        if (pathname.endsWith('/renew')) return whole({});
        if (pathname.includes('/operation/') && req.method === 'POST') return whole({ ref: 12 });
        if (pathname.includes('/operation/')) return whole({ verdict: isApproved ? 'GRANTED' : 'PENDING' });
        if (pathname.endsWith('/initiate')) return whole({ upload: 'u1', handle: 'k1' });
        if (pathname.endsWith('/chunk')) return whole({});
        if (body.includes('acquisitionDate')) return refuse(422, 'Unprocessable', 'acquisitionDate');
        return whole({ file: { id: 'f1' } });
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    cleanUpLater(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, seen, approve: () => void (isApproved = true) };
  }

  test('is learned without a wrong word, an endless try or a secret on the screen', { timeout: 30_000 }, async () => {
    const platform = await rudePlatform();
    const file = join(await testFolder(), 'profile.json');
    const answers: Record<string, string> = {
      apiKey: 'Authorization: Apikey',
      'calls.userDetail.response.id': 'data.id',
      'calls.createOperation.response.operationId': 'data.ref',
      'calls.getOperation.response.status.values.success': 'elsewhere',
      'calls.getOperation.response.status': 'data.verdict',
      'calls.getOperation.response.status.values.PENDING': 'REQUESTED',
      'calls.getOperation.response.status.values.GRANTED': 'APPROVED',
      'calls.initiateUpload.response.uploadId': 'data.upload',
      'calls.initiateUpload.response.key': 'data.handle',
      'calls.completeUpload.response.fileId': 'data.file.id',
    };
    const shown: string[] = [];
    const dialogue = answering(
      { name: 'rude' },
      {
        others: new Proxy(answers, {
          get: (all, about: string) =>
            all[about] ?? (about.startsWith('calls.') && about.includes('.response.') ? 'none' : undefined),
        }),
        onSay: (line) => {
          if (line.startsWith('Approve')) platform.approve();
        },
      },
    );
    const ask = dialogue.ask.bind(dialogue);
    dialogue.ask = (question) => {
      shown.push(...questionLines(question));
      return ask(question);
    };
    const learned = new LearnedProfile({ name: 'rude' }, file, 'marketplace-app-kit');
    const place = new PlatformPlace({
      url: platform.url,
      apiKey: secret.key,
      token: secret.token,
      pace: unpaced,
      learned,
      dialogue,
    });
    await walk(place).catch((error: unknown) => {
      throw new Error(dialogue.lines.join('\n'), { cause: error });
    });
    const { changes } = place.learned;
    expect(changes.apiKey).toEqual({ header: 'Authorization', prefix: 'Apikey ' });
    expect(changes.refusedFields).toEqual(['acquisitionDate']);
    expect(changes.calls?.getOperation?.response?.['status']).toEqual({
      name: 'data.verdict',
      values: { REQUESTED: 'PENDING', APPROVED: 'GRANTED' },
    });
    expect(changes.calls?.completeUpload?.response?.['fileId']).toBe('data.file.id');
    expect(platform.seen.filter((call) => call.endsWith('/upload/complete'))).toHaveLength(2);
    const all = [...dialogue.lines, ...shown, await readFile(file, 'utf8')].join('\n');
    expect(all.includes(secret.key) || all.includes(secret.token)).toBe(false);
    expect(withEscapes(all)).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});

test.each([
  [
    'an app',
    "import { defineApp } from '../index.ts';\nexport default defineApp({ profile: wireProfile({ name: 'a' }) });",
  ],
  [
    'code',
    "import { wireProfile } from '../index.ts';\nconst base = '/v2';\nexport default wireProfile({ name: 'a', calls: { userDetail: { path: `${base}/:token` } } });",
  ],
  ['a comment', "import { wireProfile } from '../index.ts';\nexport default wireProfile({ name: 'a' }); // ours"],
])('a file with %s is not one that connect may write', (_, text) => {
  expect(isModuleOf(text, { name: 'a' })).toBe(false);
});
test('a file of data is, in other quotes and on other lines', () => {
  expect(
    isModuleOf('import { wireProfile } from "../index.ts";\n\nexport default wireProfile({ name: "a" });', {
      name: 'a',
    }),
  ).toBe(true);
});

describe('the command', () => {
  async function connect(
    args: readonly string[],
    { lines = '', env = {} }: { lines?: string; env?: Record<string, string> } = {},
  ) {
    const child = spawn(process.execPath, [join(projectRoot, 'src/commands/connect.ts'), ...args], {
      env: { PATH: process.env['PATH'], INIT_CWD: projectRoot, ...env },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += part.toString()));
    child.stdin.on('error', () => {});
    child.stdin.end(lines);
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, text };
  }

  test('reads answers from a pipe, and writes a profile without the secrets', { timeout: 60_000 }, async () => {
    const sandbox = await startSandbox({ profile: wireProfile({ name: 'x', launchTokenField: 'session' }) });
    const { launchUrl, token } = await sandbox.launch();
    const out = join(await testFolder(), 'profile.ts');
    const approving = (async () => {
      for (let tries = 0; tries < 100; tries++) {
        const { operations } = await sandbox.control('GET', 'operations');
        if (operations[0]) return sandbox.control('POST', `operations/${operations[0].operationId}/approve`);
        await sleep(100);
      }
    })();
    const { code, text } = await connect(['--platform', sandbox.url, '--out', out, '--no-delivery'], {
      lines: `${apiKey}\n${launchUrl}\n${'\n'.repeat(20)}`,
    });
    await approving;
    expect(text).toContain('All calls are understood');
    expect(code).toBe(0);
    expect(text.includes(token) || text.includes(apiKey)).toBe(false);
    expect(await readFile(out, 'utf8')).toContain("launchTokenField: 'session'");
  });

  test('a wrong key ends it with what to check', { timeout: 30_000 }, async () => {
    const sandbox = await startSandbox();
    const { token } = await sandbox.launch();
    const out = join(await testFolder(), 'profile.json');
    const env = { PLATFORM_API_KEY: 'a-wrong-key-of-this-platform', PLATFORM_TOKEN: token };
    const { code, text } = await connect(['--platform', sandbox.url, '--out', out], { env, lines: '\n5\n' });
    expect([code, text]).toEqual([
      1,
      expect.stringContaining('the platform refuses the request; check the permissions of the API key'),
    ]);
    expect(text).not.toContain('a-wrong-key');
  });

  test('says what is wrong before it asks anything', async () => {
    const folder = await testFolder();
    await writeFile(join(folder, 'code.ts'), "export default { ...wireProfile({ name: 'a' }), decodeError() {} };");
    for (const [args, message] of [
      [[], '--platform URL is required'],
      [['--platform', 'ftp://x'], 'must be an http or https address'],
      [['--platform', 'https://u:secret@x'], 'must be an address alone'],
      [['--platform', 'http://127.0.0.1:9', '--out', 'a.txt'], 'must end with .ts or .json'],
      [
        ['--platform', 'http://127.0.0.1:9', '--out', join(folder, 'a.ts'), '--from', 'none.har'],
        'none.har cannot be read',
      ],
    ] as const) {
      const { code, text } = await connect(args);
      expect([code, text]).toEqual([1, expect.stringContaining(message)]);
      expect(text).not.toContain('secret');
    }
  });
});
