import {
  ApiException,
  BatchV1Api,
  CoreV1Api,
  KubeConfig,
  makeInformer,
  type V1Pod,
  type V1PodSpec,
} from '@kubernetes/client-node';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../files/index.ts';
import { plainText } from '../../child/index.ts';
import { EngineError, type EngineJob, type EngineState, type StepEngine } from './step-engine.ts';

/** Settings of Kubernetes in the file of `STEP_EXECUTOR`. */
export interface KubernetesSettings {
  readonly namespace: string;
  /** Pod of a job. Its first container runs `exec-step`; the engine adds its environment, memory and processors. */
  readonly pod: V1PodSpec;
  /** Additions to the pod by the label that a step requires. A label without an entry is the label of a node. */
  readonly labels?: Readonly<
    Record<
      string,
      Pick<V1PodSpec, 'nodeSelector' | 'tolerations' | 'runtimeClassName'> & {
        readonly limits?: Readonly<Record<string, string>>;
      }
    >
  >;
}

/** Kubernetes removes a job that has ended after this time. */
const keptSeconds = 600;
const pollMs = 1_000;
const mib = 1024 ** 2;
const logBytes = 16_384;
const answerWithinMs = 30_000;
/** The watch begins again after this time if the API server ended it with an error. */
const watchAgainMs = 2_000;
const managedBy = 'app.kubernetes.io/managed-by';
const manager = 'marketplace-app-kit';
const jobLabel = 'batch.kubernetes.io/job-name';
/** Label of nodes, by default. */
const nodeLabel = 'marketplace-app-kit/label';

/** One Kubernetes Job for each attempt. One watch follows the pods of all jobs. */
export class KubernetesEngine implements StepEngine {
  readonly title = 'Kubernetes';
  readonly pollMs = pollMs;
  readonly #settings: KubernetesSettings;
  readonly #jobs: BatchV1Api;
  readonly #core: CoreV1Api;
  readonly #pods: ReturnType<typeof makeInformer<V1Pod>>;
  /** Error of the watch since its last success. Null while it works. */
  #watchError: unknown = null;
  #begun: Promise<void> | null = null;
  #again: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `config`: default, that of the cluster that this process runs in, or of `KUBECONFIG`. */
  constructor(settings: KubernetesSettings, config = defaultConfig()) {
    this.#settings = settings;
    this.#jobs = config.makeApiClient(BatchV1Api);
    this.#core = config.makeApiClient(CoreV1Api);
    const { namespace } = settings;
    const labelSelector = `${managedBy}=${manager}`;
    this.#pods = makeInformer(
      config,
      `/api/v1/namespaces/${namespace}/pods`,
      () => this.#core.listNamespacedPod({ namespace, labelSelector }),
      labelSelector,
    );
    // A connection says nothing yet: only a pod or a list shows that the watch works.
    this.#pods.on('change', () => (this.#watchError = null));
    this.#pods.on('error', (error: unknown) => {
      this.#watchError = error;
      clearTimeout(this.#again);
      // After 410 Gone the informer lists the pods again by itself.
      if (!this.#isClosed) this.#again = setTimeout(() => void this.#start(), watchAgainMs).unref();
    });
  }

  async submit(job: EngineJob): Promise<void> {
    const { namespace } = this.#settings;
    await this.#watch();
    const labels = { [managedBy]: manager };
    const created = await asked(() =>
      this.#jobs.createNamespacedJob({
        namespace,
        body: {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { name: job.name, labels },
          spec: {
            backoffLimit: 0,
            ttlSecondsAfterFinished: keptSeconds,
            template: { metadata: { labels }, spec: this.#podOf(job) },
          },
        },
      }),
    );
    // The pod waits for the secret, which goes with its job.
    await asked(() =>
      this.#core.createNamespacedSecret({
        namespace,
        body: {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: {
            name: job.name,
            labels,
            ownerReferences: [
              { apiVersion: 'batch/v1', kind: 'Job', name: job.name, uid: created.metadata?.uid ?? '' },
            ],
          },
          stringData: { ...job.environment },
        },
      }),
    );
  }

  async state(name: string): Promise<EngineState> {
    await this.#watch();
    if (this.#watchError !== null) throw asEngineError(this.#watchError);
    const pod = this.#podOfJob(name);
    const ofPod = pod && stateOfPod(pod);
    if (ofPod) return ofPod;
    // Without a pod, only the job says whether one will come.
    const { namespace } = this.#settings;
    const job = await asked(() => this.#jobs.readNamespacedJob({ namespace, name }), null);
    if (!job) return 'unknown';
    const isOver = job.status?.conditions?.some(
      ({ type, status }) => /^(Complete|Failed)$/.test(type) && status === 'True',
    );
    return isOver ? 'ended' : 'waiting';
  }

  async cancel(name: string): Promise<void> {
    const { namespace } = this.#settings;
    await asked(() => this.#jobs.deleteNamespacedJob({ namespace, name, propagationPolicy: 'Background' }), null);
  }

  async logs(name: string): Promise<string> {
    const pod = this.#podOfJob(name)?.metadata?.name;
    if (pod === undefined) return '';
    const { namespace } = this.#settings;
    const log = await asked(
      () => this.#core.readNamespacedPodLog({ namespace, name: pod, tailLines: 20, limitBytes: logBytes }),
      '',
    );
    return plainText(log.slice(-2_000));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#again);
    await this.#pods.stop();
  }

  #watch(): Promise<void> {
    return (this.#begun ??= this.#start());
  }

  /** Lists the pods, and follows them from then on. */
  async #start(): Promise<void> {
    const before = this.#watchError;
    try {
      await this.#pods.start();
      // An error meanwhile has replaced the earlier one.
      if (this.#watchError === before) this.#watchError = null;
    } catch (error) {
      this.#watchError = error;
      if (!this.#isClosed) this.#again = setTimeout(() => void this.#start(), watchAgainMs).unref();
    }
  }

  #podOfJob(name: string): V1Pod | undefined {
    return this.#pods.list(this.#settings.namespace).find(({ metadata }) => metadata?.labels?.[jobLabel] === name);
  }

  #podOf({ name, memoryBytes, cores, label, timeoutMs, diskBytes }: EngineJob): V1PodSpec {
    const { pod, labels = {} } = this.#settings;
    const { limits = {}, ...more } = label === null ? {} : (labels[label] ?? { nodeSelector: { [nodeLabel]: label } });
    const [container, ...others] = pod.containers;
    const resources = {
      cpu: String(cores),
      memory: `${Math.ceil(memoryBytes / mib)}Mi`,
      'ephemeral-storage': `${Math.ceil(diskBytes / mib)}Mi`,
      ...limits,
    };
    return {
      ...pod,
      ...more,
      restartPolicy: 'Never',
      // The pod's own: the wait for a node does not count.
      activeDeadlineSeconds: Math.ceil(timeoutMs / 1_000),
      // The environment would name every service of the namespace.
      enableServiceLinks: false,
      containers: [
        {
          ...container,
          name: container?.name ?? 'step',
          envFrom: [...(container?.envFrom ?? []), { secretRef: { name } }],
          resources: { ...container?.resources, requests: resources, limits: resources },
        },
        ...others,
      ],
    };
  }
}

function defaultConfig(): KubeConfig {
  const config = new KubeConfig();
  config.loadFromDefault();
  return config;
}

/** Null: its job decides. */
function stateOfPod({ status, metadata }: V1Pod): EngineState | null {
  const ended = status?.containerStatuses?.map(({ state }) => state?.terminated).find((terminated) => terminated);
  // An evicted pod has the reason Evicted, and may have no container any more.
  if (ended?.reason === 'OOMKilled') return 'out-of-memory';
  if (ended || status?.phase === 'Succeeded' || status?.phase === 'Failed') return 'ended';
  if (metadata?.deletionTimestamp) return 'ended';
  if (status?.phase === 'Running') return 'running';
  return status?.phase === 'Pending' ? 'waiting' : null;
}

/** Calls the API. A 404 is `absent`, if that is given. Rejects with `EngineError`. */
async function asked<T, Absent = never>(call: () => Promise<T>, ...absent: [Absent?]): Promise<T | Absent> {
  const answered = new AbortController();
  const late = sleep(answerWithinMs, undefined, { ref: false, signal: answered.signal }).then(() => {
    throw new EngineError(`the API server did not answer within ${answerWithinMs / 1_000} s`);
  });
  // Nobody waits for it after an answer.
  late.catch(() => {});
  try {
    return await Promise.race([call(), late]);
  } catch (error) {
    if (absent.length > 0 && error instanceof ApiException && error.code === 404) return absent[0] as Absent;
    throw asEngineError(error);
  } finally {
    answered.abort();
  }
}

/** An error of the client holds the request, and that may hold a secret. */
function asEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  if (error instanceof ApiException) {
    const { message = '' }: { message?: unknown } = parsed(error.body);
    return new EngineError(`the API server answered ${error.code}: ${plainText(String(message)).slice(0, 300)}`);
  }
  return new EngineError(`the API server did not answer (${codeOf(error) ?? codeOf(causeOf(error)) ?? 'no code'})`);
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined);

function parsed(body: unknown): object {
  try {
    const value: unknown = typeof body === 'string' ? JSON.parse(body) : body;
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
