/** Attacks by a step from inside its process: stopped if it is confined, and shown to work if it is not. */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import type { ChildLimits, ChildUsage, ConfinementMode } from '../../src/child/index.ts';
import hostileOutputs from '../support/hostile-outputs.ts';
import hostileSteps from '../support/hostile-steps.ts';
import { cleanUpLater } from '../support/cleanup.ts';
import { testConfinement } from '../support/confinement.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { confined, fileNeeds, needing, unless } from '../support/needs.ts';
import { processesIn } from '../support/processes.ts';
import { startStepHost } from '../support/step-host.ts';
import { onlyInAll } from '../support/tags.ts';

fileNeeds(await confined());

const isRoot = process.getuid?.() === 0;

async function attempt(
  mode: ConfinementMode,
  attack: string,
  target: string,
  options: { limits?: ChildLimits; onUsage?: (usage: ChildUsage) => void } = {},
) {
  const { run, workFolder } = await startStepHost({
    definition: hostileSteps,
    confinement: await testConfinement(mode),
    ...options,
  });
  const { code, message } = await run('hostile', { type: 'synthetic', size: 64 }, { attack, target }).then(
    () => ({ code: 'delivered', message: '' }),
    (error: unknown) => error as { code: string; message: string },
  );
  return { code, message, workFolder };
}

/** A process of the test's own that waits for what is done to it. */
function bystander(): { pid: string; ended: Promise<unknown> } {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  cleanUpLater(() => void child.kill('SIGKILL'));
  return { pid: String(child.pid), ended: once(child, 'exit') };
}

async function serverOn(path?: string): Promise<string> {
  const server = createServer((socket) => void socket.on('error', () => {}).end('hello from the server'));
  server.listen(path ?? { host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  return path ?? String((server.address() as AddressInfo).port);
}

async function udpServer(): Promise<string> {
  const socket = createSocket('udp4').on(
    'message',
    (_text, { port, address }) => void socket.send('hello from the server', port, address),
  );
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanUpLater(() => void socket.close());
  return String(socket.address().port);
}

async function fileIn(name: string, text: string): Promise<string> {
  const path = join(await testFolder(), name);
  await writeFile(path, text);
  return path;
}

test('confinement works here: without it the rest of this file shows nothing', async () => {
  expect((await testConfinement('required')).kind).toBe('bubblewrap');
});

/** Attacks, each with its target. The last field is true if a control of it needs root. */
const attempts: [name: string, attack: string, target: () => Promise<string> | string, needsRoot?: true][] = [
  ['the environment of the app', 'read', () => `/proc/${process.pid}/environ`],
  ['the memory map of the app', 'read', () => `/proc/${process.pid}/maps`],
  ['the app among the processes', 'see-processes', () => process.argv[1] ?? 'vitest'],
  ['a database file', 'read', () => fileIn('app.db', 'SQLite format 3')],
  ['/etc/shadow', 'read', () => '/etc/shadow', true],
  ['/etc/passwd', 'read', () => '/etc/passwd'],
  ["the project's own folder", 'read', () => join(projectRoot, 'README.md')],
  [
    "another run's folder",
    'list',
    () => testFolder().then(async (folder) => (await mkdir(join(folder, 'input')), folder)),
  ],
  ['writing elsewhere', 'write', async () => join(await testFolder(), 'left-behind')],
  ["writing to the kit's code", 'write', () => join(projectRoot, 'node_modules', '.cache', '..', 'written-by-a-test')],
  ['a TCP connection', 'tcp', () => serverOn()],
  ['a UDP datagram', 'udp', udpServer],
  ['a Unix socket', 'unix-socket', async () => serverOn(join(await testFolder(), 'socket'))],
  ['a raw socket', 'raw-socket', () => '', true],
  ['a network interface that leads out', 'interfaces', () => ''],
  ['ptrace of another process', 'ptrace', () => bystander().pid, true],
  ['a signal to another process', 'signal', () => bystander().pid],
  ['memory that nobody counts', 'memfd', () => ''],
  ...(process.arch === 'x64'
    ? [['the keys of the session', 'keyring', () => ''] as [string, string, () => string]]
    : []),
  ['further namespaces', 'new-namespaces', () => '', true],
];

describe.each(attempts)('%s', (_name, attack, target, needsRoot) => {
  test('is stopped', async () => {
    expect(await attempt('required', attack, await target())).toMatchObject({ code: 'stopped' });
  });

  test(
    'control: unconfined it works',
    { tags: [onlyInAll], ...needing(unless(isRoot || !needsRoot, 'the attack needs root', 'run the tests as root')) },
    async () => {
      const at = await target();
      const { code, message } = await attempt('none', attack, at);
      expect([code, message]).toEqual(['got', expect.stringMatching(/./)]);
      if (at.endsWith('written-by-a-test')) await import('node:fs/promises').then(({ rm }) => rm(at));
    },
  );
});

describe('a tree of processes', () => {
  test('too many processes: the tree is ended, whole', async () => {
    const { code, workFolder } = await attempt('required', 'fork', '200', { limits: { processes: 64 } });
    expect(code).toBe('job_processes_exceeded');
    expect(processesIn(workFolder)).toEqual([]);
  });

  test('control: unlimited they all run', { tags: [onlyInAll] }, async () => {
    expect(await attempt('none', 'fork', '200', { limits: { processes: 1_000 } })).toMatchObject({
      code: 'got',
      message: '200 processes',
    });
  });

  test('grandchildren of 1 GiB together are noticed before 250 MB are exceeded by half', async () => {
    let peak = 0;
    const limits = { memoryBytes: 250e6 };
    const { code, workFolder } = await attempt('required', 'greedy-grandchildren', '1024', {
      limits,
      onUsage: ({ memoryBytes }) => (peak = Math.max(peak, memoryBytes)),
    });
    expect(code).toBe('job_memory_exceeded');
    expect(peak).toBeLessThan(375e6);
    expect(processesIn(workFolder)).toEqual([]);
  });

  test('control: with room for it they get their 1 GiB', { tags: [onlyInAll] }, async () => {
    expect(await attempt('required', 'greedy-grandchildren', '1024', { limits: { memoryBytes: 3e9 } })).toMatchObject({
      code: 'got',
      message: 'held\n',
    });
  });
});

describe('kill -9 of the app, while a grandchild means to stay', () => {
  async function appWith(mode: ConfinementMode) {
    const [folder, marker] = [await testFolder(), `lingers-${crypto.randomUUID()}`];
    const child = spawn(
      process.execPath,
      [join(projectRoot, 'test', 'support', 'hostile-app.ts'), mode, join(folder, 'work'), marker],
      { stdio: 'inherit' },
    );
    cleanUpLater(() => {
      for (const pid of processesIn(marker)) process.kill(pid, 'SIGKILL');
    });
    const lingering = () => processesIn(marker).filter((pid) => pid !== child.pid);
    // The grandchild itself, beside whatever else has the marker in its arguments.
    await vi.waitFor(async () => {
      const commands = await Promise.all(
        lingering().map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
      );
      expect(commands.some((command) => command.startsWith('/bin/sh'))).toBe(true);
    }, 300_000);
    return { child, lingering, folder };
  }

  test('confined, nothing is left, in whichever session it is', async () => {
    const { child, lingering, folder } = await appWith('required');
    child.kill('SIGKILL');
    await vi.waitFor(() => expect([...lingering(), ...processesIn(folder)]).toEqual([]), 300_000);
  });

  test('control: unconfined the grandchild stays', { tags: [onlyInAll] }, async () => {
    const { child, lingering } = await appWith('none');
    child.kill('SIGKILL');
    await once(child, 'exit');
    await sleep(1_500);
    expect(lingering().length).toBeGreaterThan(0);
  });
});

describe('what a step leaves as its output', () => {
  test.each(['link', 'hard-link', 'pipe', 'folder'])('a %s is not taken for a file', async (kind) => {
    const secret = await fileIn('secret', 'do not deliver');
    const { run, workFolder } = await startStepHost({
      definition: hostileOutputs,
    });
    await expect(run('leaves', { type: 'synthetic', size: 64 }, { kind, target: secret })).rejects.toMatchObject({
      code: 'job_output_unsafe',
    });
    await expect(access(join(workFolder, 'output', 'out.tif'))).rejects.toThrow();
  });
});
