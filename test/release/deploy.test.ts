/** Content of `deploy/`: manifests that Kubernetes accepts, and alerts and a dashboard over metrics that the app has. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Role, RoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import { Service, ServiceAccount } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readAppConfig } from '../../src/app/config.ts';
import { openEngine } from '../../src/app/execution/open-engine.ts';
import { createMetrics } from '../../src/app/monitoring/metrics.ts';
import { runStates } from '../../src/app/runs/run-state.ts';
import { projectRoot, testFolder } from '../support/folders.ts';

const folder = join(projectRoot, 'deploy');
const kinds = {
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  Job,
  NetworkPolicy,
  PodDisruptionBudget,
  Role,
  RoleBinding,
  Service,
  ServiceAccount,
} as unknown as Readonly<Record<string, new (manifest: object) => { validate(): void }>>;

interface Manifest {
  readonly kind: string;
  readonly spec: Record<string, unknown>;
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly literals: readonly string[] }[];
}

async function manifests(): Promise<Manifest[]> {
  const { resources } = await kustomization();
  const texts = await Promise.all(resources.map((name) => readFile(join(folder, 'kubernetes', name), 'utf8')));
  return texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest));
}

const kustomization = async () =>
  parse(await readFile(join(folder, 'kubernetes', 'kustomization.yaml'), 'utf8')) as Kustomization;

describe('the manifests of Kubernetes', () => {
  test('are all named by the kustomization, and each is valid by the schema of its kind', async () => {
    const entries = await readdir(join(folder, 'kubernetes'), { withFileTypes: true });
    const names = entries.flatMap((one) => (one.isFile() && one.name !== 'kustomization.yaml' ? [one.name] : []));
    expect([...(await kustomization()).resources].toSorted()).toEqual(names.toSorted());
    const all = await manifests();
    expect(all.length).toBeGreaterThan(5);
    for (const manifest of all) {
      const Kind = kinds[manifest.kind]!;
      expect(() => new Kind(manifest).validate(), manifest.kind).not.toThrow();
    }
    const broken = structuredClone(all.find(({ kind }) => kind === 'Deployment')!);
    broken.spec['replicas'] = 'two';
    expect(() => new Deployment(broken as object as ConstructorParameters<typeof Deployment>[0]).validate()).toThrow();
  });

  test('of the component for executors are valid, and its engine opens', async () => {
    const component = join(folder, 'kubernetes', 'executor');
    const texts = await Promise.all(
      ['access.yaml', 'network.yaml'].map((name) => readFile(join(component, name), 'utf8')),
    );
    const all = texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest));
    expect(all.map(({ kind }) => kind)).toEqual([
      'ServiceAccount',
      'Role',
      'RoleBinding',
      'NetworkPolicy',
      'NetworkPolicy',
    ]);
    for (const manifest of all)
      expect(() => new kinds[manifest.kind]!(manifest).validate(), manifest.kind).not.toThrow();
    const { resources } = parse(await readFile(join(component, 'kustomization.yaml'), 'utf8')) as Kustomization;
    expect(resources).toEqual(['access.yaml']);
    const engine = await openEngine(join(component, 'engine.json'));
    expect(engine.title).toBe('Kubernetes');
    await engine.close?.();
  });

  test('have settings that the app accepts', async () => {
    const { configMapGenerator } = await kustomization();
    const settings = configMapGenerator.flatMap(({ literals }) => literals.map((one) => one.split('=', 2)));
    const env = {
      ...(Object.fromEntries(settings) as Record<string, string>),
      PLATFORM_API_KEY: 'key',
      APP_SECRET: 'x'.repeat(32),
      DATABASE_URL: 'postgres://u:p@h/d',
      DATA_DIR: await testFolder(),
    };
    const config = readAppConfig(env, (warning) => expect.fail(warning), { role: 'worker' });
    expect(config.publicMetrics).toBe(true);
    // Less than the limit of a worker's ephemeral storage.
    const text = await readFile(join(folder, 'kubernetes', 'worker.yaml'), 'utf8');
    const gibibytes = Number(/limits: \{.*ephemeral-storage: (\d+)Gi/.exec(text)?.[1]);
    expect(config.workDiskBytes).toBeLessThan(gibibytes * 2 ** 30);
    expect(config.stepDiskBytes).toBeLessThan(config.workDiskBytes);
  });
});

test('alerts and dashboard name metrics and states that the app has', async () => {
  const { text } = await createMetrics().render({
    countRuns: async () => ({}),
    stepLoad: () => ({ running: 0, waiting: 0 }),
    readiness: { ready: true, dependencies: { database: 'ok', platform: 'ok' } },
  });
  const there = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  for (const path of ['prometheus/alerts.yml', 'grafana/dashboard.json']) {
    const used = await readFile(join(folder, path), 'utf8');
    const names = [...used.matchAll(/\b(?:app|process)_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    );
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) expect(there, path).toContain(name);
    for (const [, states = ''] of used.matchAll(/state=~?\\?"([A-Z_|]+)/g))
      for (const state of states.split('|')) expect(runStates, path).toContain(state);
  }
  const { groups } = parse(await readFile(join(folder, 'prometheus', 'alerts.yml'), 'utf8')) as {
    groups: { rules: { alert?: string; expr: string; annotations?: { summary: string; description: string } }[] }[];
  };
  const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined);
  expect(alerts).toHaveLength(16);
  for (const { annotations } of alerts)
    expect([annotations?.summary, annotations?.description].every((part) => (part?.length ?? 0) > 10)).toBe(true);
});

test('each metric of the app is documented', async () => {
  const { text } = await createMetrics().render({
    countRuns: async () => ({}),
    stepLoad: () => ({ running: 0, waiting: 0 }),
    readiness: { ready: true, dependencies: { database: 'ok', platform: 'ok' } },
  });
  const page = await readFile(join(projectRoot, 'docs', 'monitor.md'), 'utf8');
  for (const [, name] of text.matchAll(/^# TYPE (app_\S+)/gm)) expect(page).toContain(`\`${name}\``);
});
