/** A Slurm cluster of two nodes on this machine, for the tests of a file. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import { findProgram } from '../../scripts/needs.mjs';
import { cleanUpAfterFile } from './cleanup.ts';
import { makeFolder } from './folders.ts';
import { unless } from './needs.ts';

const programs = ['munged', 'slurmctld', 'slurmd', 'sbatch'];
const path = [process.env['PATH'], '/usr/sbin', '/usr/local/sbin'].join(delimiter);
const there = programs.every((name) => findProgram([name], '/usr/*/sbin') ?? findProgram([name], undefined) ?? findProgram([name], '/*/sbin')); // oxfmt-ignore

/** Slurm's programs, and the right to start its daemons. */
export const slurm = unless(
  there && process.getuid?.() === 0,
  'there is no Slurm here, or this user is not root',
  'as root: apt-get install slurm-wlm munge',
);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Starts the cluster. Returns the path of its configuration, and what stops a node. */
export async function startSlurm(): Promise<{ conf: string; killNodes: () => void; env: NodeJS.ProcessEnv }> {
  const folder = await makeFolder();
  await chmod(folder, 0o755);
  const started: ChildProcess[] = [];
  const start = (program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const child = spawn(program, args, { env: { ...process.env, PATH: path, ...env }, stdio: 'ignore' });
    started.push(child);
    return child;
  };
  for (const name of ['state', 'spool/n1', 'spool/n2', 'munge']) await mkdir(join(folder, name), { recursive: true });
  const munge = join(folder, 'munge');
  await chmod(munge, 0o711);
  await writeFile(join(munge, 'key'), randomBytes(1_024), { mode: 0o400 });
  const socket = join(munge, 'socket');
  start('munged', [
    ...['--foreground', '--force', `--socket=${socket}`, `--key-file=${join(munge, 'key')}`],
    ...[`--pid-file=${join(munge, 'pid')}`, `--log-file=${join(munge, 'log')}`, `--seed-file=${join(munge, 'seed')}`],
  ]);
  const [host, ports] = [hostname().split('.')[0] ?? '', [await freePort(), await freePort(), await freePort()]];
  const conf = join(folder, 'slurm.conf');
  await writeFile(
    conf,
    [
      'ClusterName=t',
      `SlurmctldHost=${host}(127.0.0.1)`,
      'SlurmUser=root',
      'AuthType=auth/munge',
      `AuthInfo=socket=${socket}`,
      `StateSaveLocation=${folder}/state`,
      `SlurmdSpoolDir=${folder}/spool/%n`,
      `SlurmdPidFile=${folder}/%n.pid`,
      `SlurmctldPidFile=${folder}/ctld.pid`,
      'ProctrackType=proctrack/linuxproc',
      'TaskPlugin=task/none',
      'SelectType=select/cons_tres',
      'SelectTypeParameters=CR_Core_Memory',
      'ReturnToService=2',
      `SlurmctldPort=${ports[0]}`,
      `NodeName=n1 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=1 RealMemory=4000`,
      `NodeName=n2 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=1 RealMemory=4000 Feature=gpu`,
      'PartitionName=p Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP',
      '',
    ].join('\n'),
  );
  const env = { SLURM_CONF: conf, PATH: path };
  start('slurmctld', ['-D', '-i', '-c'], env);
  const nodes = ['n1', 'n2'].map((name) => start('slurmd', ['-D', '-N', name], env));
  cleanUpAfterFile(async () => {
    for (const child of started.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await gone;
      clearTimeout(late);
    }
  });
  const info = async () =>
    (await promisify(execFile)('sinfo', ['--noheader', '--format=%t %D'], { env: { ...process.env, ...env } })).stdout;
  await vi.waitFor(async () => {
    if (!/^idle 2$/m.test(await info())) throw new Error('the nodes are not idle yet');
  }, 60_000);
  return { conf, env, killNodes: () => nodes.forEach((node) => node.kill('SIGKILL')) };
}
