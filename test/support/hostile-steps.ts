/** A step that tries to leave its process in every way it knows. It tells by an error, `stopped` or `got`, how far it came. */
import { defineApp } from '../../src/app/definition/app-definition.ts';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type NetConnectOpts } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../src/contract/kit-error.ts';
import { defineStep, z } from '../../src/steps/step.ts';

const python = (code: string, ...args: string[]) =>
  execFileSync('/usr/bin/python3', ['-c', code, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

async function talk(options: NetConnectOpts): Promise<string> {
  const socket = connect(options);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}

/** Each answers what it got hold of, or throws. */
const attacks: Readonly<Record<string, (target: string) => Promise<string> | string>> = {
  read: (path) => readFileSync(path, 'latin1'),
  list: (folder) => readdirSync(folder).join(),
  write: (path) => {
    writeFileSync(path, 'written by a step');
    return 'written';
  },
  'see-processes': (pid) => {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    if (!pids.some((one) => readFileSync(`/proc/${one}/cmdline`, 'latin1').includes(pid)))
      throw new Error('no such process is seen');
    return 'seen';
  },
  interfaces: () => {
    const names = Object.keys(networkInterfaces()).filter((name) => name !== 'lo');
    if (names.length === 0) throw new Error('there is no interface');
    return names.join();
  },
  tcp: (port) => talk({ host: '127.0.0.1', port: Number(port) }),
  'unix-socket': (path) => talk({ path }),
  udp: async (port) => {
    const socket = createSocket('udp4');
    socket.send('hello', Number(port), '127.0.0.1');
    const answer = await Promise.race([once(socket, 'message').then(([text]) => String(text)), sleep(1_000)]);
    socket.close();
    if (!answer) throw new Error('no answer');
    return answer;
  },
  'raw-socket': () =>
    python('import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); print("open")'),
  ptrace: (pid) =>
    python(
      'import ctypes, sys\nlibc = ctypes.CDLL(None, use_errno=True)\nassert libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()\nlibc.ptrace(17, int(sys.argv[1]), 0, 0)\nprint("attached")',
      pid,
    ),
  signal: (pid) => {
    process.kill(Number(pid), 'SIGTERM');
    return 'sent';
  },
  memfd: () => python('import os; os.write(os.memfd_create("x"), b"x"); print("made")'),
  keyring: () =>
    python(
      'import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nassert libc.syscall(250, 0, -3, 1) > 0, ctypes.get_errno()\nprint("there")',
    ),
  'new-namespaces': () =>
    execFileSync('/usr/bin/unshare', ['--user', '--map-root-user', 'true'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }) || 'made',
  /** Many processes that do nothing. */
  fork: async (count) => {
    const made = Array.from({ length: Number(count) }, () => spawn('/usr/bin/sleep', ['30'], { stdio: 'ignore' }));
    await sleep(1_500);
    const alive = made.filter(
      ({ pid, exitCode, signalCode }) => pid !== undefined && exitCode === null && signalCode === null,
    ).length;
    made.forEach((one) => one.kill('SIGKILL'));
    return `${alive} processes`;
  },
  /** Memory of processes that the step's own has started: none of them takes much for one. */
  'greedy-grandchildren': (megabytes) =>
    python(
      'import os, sys, time\nfor _ in range(4):\n  if os.fork() == 0:\n    held = [bytearray(1 << 20) for _ in range(int(sys.argv[1]) // 4)]\n    time.sleep(0.5)\n    os._exit(0)\nfor _ in range(4): assert os.wait()[1] == 0\nprint("held")',
      megabytes,
    ),
  /** A process in a session of its own that means to outlive everything. */
  linger: async (marker) => {
    spawnSync('/usr/bin/setsid', ['--fork', '/bin/sh', '-c', 'while :; do sleep 1; done', marker], { stdio: 'ignore' });
    await sleep(600_000);
    return '';
  },
};

const steps = [
  defineStep({
    id: 'hostile',
    version: '1.0.0',
    title: 'hostile',
    description: 'hostile',
    parameters: z.object({
      attack: z.string().meta({ title: 'attack', description: 'attack' }),
      target: z.string().default('').meta({ title: 'target', description: 'target' }),
    }),
    input: { description: 'anything', synthetic: 'elevation' },
    output: { fileName: 'out.tif', sourceType: 'UNKNOWN', bands: 'as-input', preview: { ramp: 'gray' } },
    async run({ parameters: { attack, target } }) {
      const got = await Promise.resolve()
        .then(() => attacks[attack]!(target))
        .catch((error: unknown) => {
          throw new KitError('stopped', String(error));
        });
      throw new KitError('got', got);
    },
  }),
];

export default defineApp({
  module: import.meta.url,
  id: 'hostile-steps',
  name: 'hostile-steps',
  description: 'Steps of a test.',
  steps,
});
