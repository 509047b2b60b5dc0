/** An API server of Kubernetes for tests: checks each object by the real schemas, keeps jobs, secrets and pods, plays watches, and starts a pod's command as a process. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig, type V1Job, type V1Pod, type V1Secret } from '@kubernetes/client-node';
import { Job } from 'kubernetes-models/batch/v1';
import { Secret } from 'kubernetes-models/v1';
import { cleanUpLater } from './cleanup.ts';

interface Watcher {
  readonly res: ServerResponse;
}

export interface KubeApi {
  readonly config: KubeConfig;
  readonly jobs: Map<string, V1Job>;
  readonly secrets: Map<string, V1Secret>;
  readonly pods: Map<string, V1Pod>;
  /** Requests, as `METHOD path`. */
  readonly requests: string[];
  /** Changes the status of the pod of a job, and tells the watches. */
  readonly setStatus: (job: string, status: NonNullable<V1Pod['status']>) => void;
  /** Ends all watches: with 410 Gone, or by cutting the connection. */
  readonly endWatches: (how: 'gone' | 'cut') => void;
  /** Kills the process of a job's pod. */
  readonly killPod: (job: string) => void;
  /** Answers each request with this status. Null: as usual. */
  readonly fail: { status: number | null };
}

/** `command`: what a pod's container does on this machine, with the environment of its secret. Null: pods stay Pending. */
export async function startKubeApi(
  namespace: string,
  command: { readonly argv: readonly string[]; readonly env: NodeJS.ProcessEnv } | null,
): Promise<KubeApi> {
  const [jobs, secrets, pods] = [new Map<string, V1Job>(), new Map<string, V1Secret>(), new Map<string, V1Pod>()];
  const processes = new Map<string, ChildProcess>();
  const watchers = new Set<Watcher>();
  const requests: string[] = [];
  const fail: KubeApi['fail'] = { status: null };
  let version = 1;

  /** Events, so that a watch gets those since the version that it names. */
  const events: { readonly version: number; readonly line: string }[] = [];
  const tell = (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: V1Pod) => {
    pod.metadata!.resourceVersion = String((version += 1));
    const line = `${JSON.stringify({ type, object: { ...pod, apiVersion: 'v1', kind: 'Pod' } })}
`;
    events.push({ version, line });
    for (const { res } of watchers) res.write(line);
  };
  const setStatus = (job: string, status: NonNullable<V1Pod['status']>) => {
    const pod = pods.get(job);
    if (!pod) return;
    pod.status = status;
    tell('MODIFIED', pod);
  };
  const endJob = (job: string, type: 'Complete' | 'Failed') => {
    const found = jobs.get(job);
    if (found) found.status = { conditions: [{ type, status: 'True' }] };
  };

  /** Starts the pod as a kubelet would, once its secret exists. */
  function startPod(name: string): void {
    if (command === null || !pods.has(name)) return;
    const variables = Object.fromEntries(
      Object.entries(secrets.get(name)?.data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString(),
      ]),
    );
    const [program = '', ...args] = command.argv;
    const child = spawn(program, args, { env: { ...command.env, ...variables }, stdio: 'ignore', detached: true });
    processes.set(name, child);
    setStatus(name, { phase: 'Running' });
    child.once('exit', (code) => {
      processes.delete(name);
      const terminated = { exitCode: code ?? 137, reason: code === 0 ? 'Completed' : 'Error' };
      endJob(name, code === 0 ? 'Complete' : 'Failed');
      setStatus(name, {
        phase: code === 0 ? 'Succeeded' : 'Failed',
        containerStatuses: [
          { ...{ name: 'step', image: '', imageID: '', ready: false, restartCount: 0 }, state: { terminated } },
        ],
      });
    });
  }

  function removeJob(name: string): void {
    jobs.delete(name);
    secrets.delete(name);
    const child = processes.get(name);
    if (child?.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    const pod = pods.get(name);
    pods.delete(name);
    if (pod) tell('DELETED', pod);
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? '', 'http://kube');
    requests.push(`${req.method} ${url.pathname}`);
    const send = (status: number, body: object) =>
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    const problem = (status: number, message: string) =>
      send(status, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: status });
    if (fail.status !== null) return void problem(fail.status, 'the API server has a fault');
    let text = '';
    for await (const part of req.setEncoding('utf8')) text += String(part);
    const [, group, kind, name] = /^\/(?:api|apis\/batch)\/(v1)\/namespaces\/tests\/(\w+)(?:\/([\w-]+))?/.exec(url.pathname) ?? []; // oxfmt-ignore
    if (group === undefined || namespace !== 'tests') return void problem(404, 'no such resource');
    if (req.method === 'POST' && kind === 'jobs') {
      const job = JSON.parse(text) as V1Job;
      try {
        new Job(JSON.parse(text) as ConstructorParameters<typeof Job>[0]).validate();
      } catch (error) {
        return void problem(422, String(error));
      }
      const own = job.metadata!.name!;
      if (jobs.has(own)) return void problem(409, `jobs.batch "${own}" already exists`);
      job.metadata = { ...job.metadata, uid: randomUUID() };
      jobs.set(own, job);
      const labels = { ...job.spec!.template.metadata?.labels, 'batch.kubernetes.io/job-name': own };
      const pod: V1Pod = {
        metadata: { name: `${own}-x7`, namespace, labels },
        spec: job.spec!.template.spec!,
        status: { phase: 'Pending' },
      };
      pods.set(own, pod);
      tell('ADDED', pod);
      return void send(201, job);
    }
    if (req.method === 'POST' && kind === 'secrets') {
      const secret = JSON.parse(text) as V1Secret;
      try {
        new Secret(JSON.parse(text) as ConstructorParameters<typeof Secret>[0]).validate();
      } catch (error) {
        return void problem(422, String(error));
      }
      const data = Object.entries(secret.stringData ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value).toString('base64'),
      ]);
      secrets.set(secret.metadata!.name!, { ...secret, data: Object.fromEntries(data) as Record<string, string> });
      setTimeout(() => startPod(secret.metadata!.name!), 50);
      return void send(201, { apiVersion: 'v1', kind: 'Secret', metadata: secret.metadata });
    }
    if (req.method === 'GET' && kind === 'jobs' && name !== undefined) {
      const job = jobs.get(name);
      return void (job ? send(200, job) : problem(404, `jobs.batch "${name}" not found`));
    }
    if (req.method === 'DELETE' && kind === 'jobs' && name !== undefined) {
      if (!jobs.has(name)) return void problem(404, `jobs.batch "${name}" not found`);
      removeJob(name);
      return void send(200, { kind: 'Status', apiVersion: 'v1', status: 'Success' });
    }
    if (req.method === 'GET' && kind === 'pods' && url.searchParams.get('watch') === 'true') {
      res.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
      const since = Number(url.searchParams.get('resourceVersion') ?? 0);
      for (const event of events) if (event.version > since) res.write(event.line);
      const watcher = { res };
      watchers.add(watcher);
      res.once('close', () => watchers.delete(watcher));
      return;
    }
    if (req.method === 'GET' && kind === 'pods' && name === undefined)
      return void send(200, {
        apiVersion: 'v1',
        kind: 'PodList',
        metadata: { resourceVersion: String(version) },
        items: [...pods.values()],
      });
    problem(404, 'no such resource');
  }

  const server = createServer((req, res) => void answer(req, res).catch(() => res.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  cleanUpLater(async () => {
    for (const { pid } of processes.values()) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'test', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'test' },
  );
  return {
    ...{ config, jobs, secrets, pods, requests, setStatus, fail },
    endWatches(how) {
      for (const { res } of watchers) {
        if (how === 'cut') res.destroy();
        else
          res.end(
            `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410 } })}\n`,
          );
      }
      watchers.clear();
    },
    killPod(job) {
      const pid = processes.get(job)?.pid;
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    },
  };
}
