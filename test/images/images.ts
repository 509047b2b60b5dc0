/**
 * `npm run test:images` builds the images. `npm run test:images -- certifier` stops after the certifier's. The test certifies an
 * app in Python by the image `certifier`, runs the composition of docker-compose.yml, then the pods of deploy/kubernetes, and
 * drives runs through both. If no registry responds, it makes the base images from Debian packages. All containers share one
 * loopback, so the test does not cover bridges, DNS names and published ports.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { bareRoot, Skipped, slimRoot } from '../../scripts/bare-machine.mjs';
import { FolderInUseError, ownFolder } from '../../src/server/index.ts';
import { projectRoot } from '../support/folders.ts';

const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'marketplace-app-kit', 'images');
const nodeImage = 'docker.io/library/node:24-bookworm-slim';
const debianImage = 'docker.io/library/debian:bookworm-slim';
const postgresImage = 'docker.io/library/postgres:17-bookworm';
const prefix = 'kit-images-test';

interface Service {
  readonly image?: string;
  readonly build?: { readonly target: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly pids_limit?: number;
}

const secrets: Readonly<Record<string, string>> = {
  SANDBOX_API_KEY: randomBytes(32).toString('hex'),
  SANDBOX_ADMIN_KEY: randomBytes(32).toString('hex'),
  APP_SECRET: randomBytes(32).toString('hex'),
  POSTGRES_PASSWORD: randomBytes(16).toString('hex'),
};

/** Services of the composition, with values for all variables. */
function composition(): Readonly<Record<string, Service>> {
  const text = readFileSync(join(projectRoot, 'docker-compose.yml'), 'utf8').replace(
    /\$\{(\w+)[^}]*\}/g,
    (_, name: string) => secrets[name] ?? '',
  );
  return (parse(text, { merge: true }) as { services: Record<string, Service> }).services;
}

/** Podman with its own storage. It runs in a mount namespace, and containers also run in a network namespace. */
class Engine {
  readonly #holder: ChildProcess;
  readonly #environment: NodeJS.ProcessEnv;

  constructor() {
    const [store, run] = [join(cache, 'store'), join(cache, 'run')];
    const files = {
      'containers.conf': `[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "crun"\nstatic_dir = "${store}/libpod"\ntmp_dir = "${run}/libpod"\ninfra_image = "localhost/${prefix}-pause"\nvolume_path = "${store}/volumes"\n`,
      'storage.conf': `[storage]\ndriver = "overlay"\ngraphroot = "${store}"\nrunroot = "${run}"\n`,
      // Podman takes the user namespaces of pods from this range.
      subids: 'containers:1000000:1048576\n',
    };
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cache, name), text);
    this.#environment = {
      ...process.env,
      CONTAINERS_CONF: join(cache, 'containers.conf'),
      CONTAINERS_STORAGE_CONF: join(cache, 'storage.conf'),
    };
    // crun rejects a mixture of both versions of control groups.
    const script = `umount /sys/fs/cgroup/unified 2>/dev/null; for file in subuid subgid; do mount --bind ${cache}/subids /etc/$file; done; ip link set lo up; echo ready; exec sleep infinity`;
    this.#holder = spawn('unshare', ['-m', '-n', '--propagation', 'private', 'sh', '-c', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }

  async ready(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#holder.stdout?.once('data', () => resolve());
      this.#holder.once('exit', () => reject(new Skipped('namespaces cannot be made here')));
    });
  }

  /** `net: false` uses the network of the machine, for downloads. Default: the network of the composition. */
  enter(args: readonly string[], { net = true, input }: { net?: boolean; input?: string } = {}) {
    const entered = ['-m', '-t', String(this.#holder.pid), ...(net ? ['-n'] : []), '--', ...args];
    return spawnSync('nsenter', entered, {
      cwd: projectRoot,
      env: this.#environment,
      encoding: 'utf8',
      input,
      maxBuffer: 256 * 1024 * 1024,
    });
  }

  /** Starts a process that runs until it is killed, in the network of the composition. */
  start(args: readonly string[]): ChildProcess {
    const entered = ['-m', '-n', '-t', String(this.#holder.pid), '--', ...args];
    return spawn('nsenter', entered, { cwd: projectRoot, env: this.#environment, stdio: 'ignore' });
  }

  /** Output of a podman command. Throws if it fails. */
  podman(args: readonly string[], options: { net?: boolean } = {}): string {
    const { status, stdout, stderr } = this.enter(['podman', ...args], options);
    if (status !== 0)
      throw new Error(`podman ${args.slice(0, 4).join(' ')}: exit ${status}\n${`${stdout}${stderr}`.slice(-4_000)}`);
    return stdout.trim();
  }

  has(image: string): boolean {
    return this.enter(['podman', 'image', 'exists', image]).status === 0;
  }

  close(): void {
    this.#holder.kill('SIGKILL');
  }
}

/** Pulls the base images, or makes them from Debian packages. */
function baseImages(engine: Engine): void {
  const bases = [
    [debianImage, debianFromPackages],
    [nodeImage, nodeFromDebian],
    [postgresImage, () => build(engine, ['-t', postgresImage, join(cache, 'empty')], postgresFile)],
  ] as const;
  for (const [image, make] of bases) {
    if (engine.has(image)) continue;
    const pulled = engine.enter(['timeout', '60', 'podman', 'pull', '--quiet', image], { net: false });
    if (pulled.status === 0) continue;
    console.log(`${image} cannot be pulled: it is made from Debian packages`);
    make(engine);
  }
}

function importRoot(engine: Engine, root: string, image: string): void {
  const archive = join(cache, 'root.tar');
  const packed = spawnSync('tar', ['-C', root, '-cf', archive, '.'], { encoding: 'utf8' });
  if (packed.status !== 0) throw new Error(packed.stderr);
  engine.podman(['import', archive, image], { net: false });
  rmSync(archive);
}

function debianFromPackages(engine: Engine): void {
  importRoot(engine, slimRoot(join(cache, 'bare')), debianImage);
}

function nodeFromDebian(engine: Engine): void {
  importRoot(engine, bareRoot(join(cache, 'bare'), 'somebody'), 'localhost/bare');
  const context = join(cache, 'node');
  rmSync(context, { recursive: true, force: true });
  cpSync(join(projectRoot, 'node_modules', `node-linux-${process.arch}`), context, { recursive: true });
  const file = `FROM localhost/bare\nCOPY bin/node /usr/local/bin/node\nCOPY include /usr/local/include\nENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt\nRUN userdel -r somebody && useradd --create-home --uid 1000 node && npm install --global npm@11\n`;
  build(engine, ['-t', nodeImage, context], file);
  rmSync(context, { recursive: true, force: true });
}

const postgresFile = `FROM ${nodeImage}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/* && mkdir -p /var/lib/postgresql/data && chown postgres /var/lib/postgresql/data
USER postgres
CMD ["sh", "-ec", "bin=$(echo /usr/lib/postgresql/*/bin); data=/var/lib/postgresql/data; if [ ! -s $data/PG_VERSION ]; then echo \\"$POSTGRES_PASSWORD\\" > /tmp/password; $bin/initdb -D $data -U $POSTGRES_USER --pwfile=/tmp/password -A scram-sha-256; echo \\"create database $POSTGRES_DB\\" | $bin/postgres --single -D $data postgres; fi; exec $bin/postgres -D $data -k /tmp"]
`;

/** Builds an image. `file` is the text of a Containerfile and replaces the one in the context. */
function build(engine: Engine, args: readonly string[], file?: string): void {
  mkdirSync(join(cache, 'empty'), { recursive: true });
  const path = join(cache, 'Containerfile');
  if (file !== undefined) writeFileSync(path, file);
  const options = file === undefined ? [] : ['-f', path];
  engine.podman(['build', '--format', 'docker', '--network', 'host', '--layers', ...options, ...args], { net: false });
}

interface Container {
  readonly name: string;
  readonly service: Service;
}

/** Starts a service with the settings of the composition. `more` adds environment variables, `also` options of podman. */
function start(
  engine: Engine,
  service: Service,
  name: string,
  more: Readonly<Record<string, string>> = {},
  also: readonly string[] = [],
): Container {
  const image = service.build ? `localhost/${prefix}-${service.build.target}` : (service.image ?? '');
  const environment = { ...service.environment, ...more };
  const options = [
    ...Object.entries(environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    ...(service.security_opt ?? []).flatMap((option) => {
      // Podman has another name for this option.
      if (option === 'systempaths=unconfined') return ['--security-opt', 'unmask=ALL'];
      if (option.startsWith('apparmor')) return [];
      return ['--security-opt', option.replace('seccomp:', `seccomp=${projectRoot}/`)];
    }),
    ...(service.cap_drop ?? []).flatMap((one) => ['--cap-drop', one]),
    ...(service.read_only ? ['--read-only'] : []),
    ...(service.tmpfs ?? []).flatMap((one) => ['--tmpfs', one]),
    ...(service.volumes ?? []).flatMap((one) => ['--volume', `${prefix}-${one}`]),
    ...['postgres', 'sandbox'].flatMap((host) => ['--add-host', `${host}:127.0.0.1`]),
    ...also,
  ];
  engine.podman(['run', '--detach', '--name', `${prefix}-${name}`, '--network', 'host', ...options, image, ...(service.command ?? [])]); // oxfmt-ignore
  return { name: `${prefix}-${name}`, service };
}

async function until(what: string, isThere: () => boolean, seconds = 180): Promise<void> {
  for (const endMs = performance.now() + seconds * 1_000; !isThere(); await sleep(500))
    if (performance.now() > endMs) throw new Error(`${what} did not happen within ${seconds} s`);
}

let passed = 0;
const failures: string[] = [];
function check(what: string, isRight: boolean, seen = ''): void {
  if (isRight) passed += 1;
  else failures.push(what);
  console.log(`${isRight ? 'passed' : 'FAILED'}  ${what}${isRight || seen === '' ? '' : `: ${seen.slice(-1_500)}`}`);
}

/** Builds an image of the Dockerfile, and checks its size, in MB. */
function buildTarget(engine: Engine, target: string, most: number): void {
  const began = performance.now();
  build(engine, ['--target', target, '-t', `localhost/${prefix}-${target}`, projectRoot]);
  const bytes = engine.podman(['image', 'inspect', '--format', '{{.Size}}', `localhost/${prefix}-${target}`]);
  const size = Math.round(Number(bytes) / 1e6);
  console.log(`${target}: built in ${Math.round((performance.now() - began) / 1_000)} s`);
  check(`the image ${target} has ${size} MB, less than ${most}`, size < most);
}

/** Certifies the example in Python, which runs in a container with Python and nothing else, by the image `certifier`. */
async function playCertifier(engine: Engine): Promise<void> {
  buildTarget(engine, 'certifier', 300);
  clear(engine);
  const image = `localhost/${prefix}-certifier`;
  const name = (container: string) => `${prefix}-${container}`;
  const run = (container: string, ...args: string[]) =>
    engine.podman(['run', '--detach', '--name', name(container), '--network', 'host', ...args]);
  const key = ['--env', `SANDBOX_API_KEY=${secrets['SANDBOX_API_KEY']}`];

  run('sandbox-alone', '--read-only', ...key, '--env', `SANDBOX_ADMIN_KEY=${secrets['SANDBOX_ADMIN_KEY']}`, image);
  const isHealthy = () => engine.enter(['podman', 'healthcheck', 'run', name('sandbox-alone')]).status === 0;
  await until('the sandbox of the certifier is healthy', isHealthy).catch(() => {});
  check('the image certifier starts a sandbox', isHealthy(), engine.enter(['podman', 'logs', name('sandbox-alone')]).stderr); // oxfmt-ignore
  check('it runs as the user node', engine.podman(['exec', name('sandbox-alone'), 'id', '-u']) === '1000');
  engine.podman(['stop', '--time', '20', name('sandbox-alone')]);
  const code = engine.podman(['inspect', '--format', '{{.State.ExitCode}}', name('sandbox-alone')]);
  check('it stops with exit code 0', code === '0', code);

  await playTestcontainers(engine, image);

  const python = `localhost/${name('python')}`;
  const install = 'RUN apt-get update && apt-get install -y --no-install-recommends python3';
  build(engine, ['-t', python, join(cache, 'empty')], `FROM ${debianImage}\n${install}\n`);
  const platform = ['--env', 'PLATFORM_URL=http://127.0.0.1:4020', '--env', `PLATFORM_API_KEY=${secrets['SANDBOX_API_KEY']}`]; // oxfmt-ignore
  const app = `${join(projectRoot, 'examples/python/app.py')}:/app.py:ro`;
  run('python', ...platform, '--env', 'PORT=5000', '--volume', app, python, 'python3', '/app.py');
  const reports = name('reports');
  const certify = [
    'certify',
    '--port',
    '4020',
    '--launch-url',
    'http://127.0.0.1:5000/launch',
    '--html',
    'report.html',
  ];
  const volume = ['--volume', `${reports}:/reports`];
  const began = performance.now();
  const certified = engine.enter(['podman', 'run', '--rm', '--network', 'host', ...key, ...volume, image, ...certify]);
  console.log(`certified in ${Math.round((performance.now() - began) / 1_000)} s`);
  check(
    'an app in a container of Python alone is certified',
    certified.status === 0 && /FINISHED PASSED/.test(certified.stdout),
    `${certified.stdout}${certified.stderr}`,
  );
  const report = ['run', '--rm', ...volume, '--entrypoint', 'cat', image, '/reports/report.html'];
  check('its report is on the volume', engine.enter(['podman', ...report]).stdout.includes('upload-after-approval'));
}

/** Runs the example of Testcontainers against podman's socket. Its packages come from the registry of npm. */
async function playTestcontainers(engine: Engine, image: string): Promise<void> {
  const [folder, socket] = [join(cache, 'testcontainers'), join(cache, 'podman.sock')];
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(projectRoot, 'examples/testcontainers'), folder, { recursive: true });
  const install = ['npm', 'install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund'];
  const installed = engine.enter(install, { net: false });
  if (installed.status !== 0) throw new Error(`npm install of the example: ${installed.stderr.slice(-2_000)}`);
  rmSync(socket, { force: true });
  const service = engine.start(['podman', 'system', 'service', '--time', '0', `unix://${socket}`]);
  try {
    await until('podman answers at its socket', () => existsSync(socket));
    const settings = [
      `DOCKER_HOST=unix://${socket}`,
      // Testcontainers would pull another image for the container that cleans up.
      'TESTCONTAINERS_RYUK_DISABLED=true',
      'SANDBOX_NETWORK=host',
      `SANDBOX_IMAGE=${image}`,
    ];
    const example = engine.enter(['env', ...settings, process.execPath, join(folder, 'sandbox.mjs')]);
    check(
      'the example of Testcontainers starts a sandbox, and approves an operation',
      example.status === 0 && example.stdout.includes('the operation is APPROVED'),
      `${example.stdout}${example.stderr}`,
    );
  } finally {
    service.kill('SIGTERM');
  }
}

async function play(engine: Engine): Promise<void> {
  baseImages(engine);
  await playCertifier(engine);
  if (process.argv.includes('certifier')) return;
  for (const [target, most] of Object.entries({ app: 450, sandbox: 700 })) buildTarget(engine, target, most);
  // The whole suite tests images that were built before.
  writeFileSync(join(cache, 'built'), '');
  clear(engine);
  const services = composition();
  const service = (name: string): Service => {
    const found = services[name];
    if (!found) throw new Error(`docker-compose.yml has no service ${name}`);
    return found;
  };
  const isHealthy = ({ name }: Container) => engine.enter(['podman', 'healthcheck', 'run', name]).status === 0;
  const logsOf = ({ name }: Container) => engine.enter(['podman', 'logs', '--tail', '30', name]).stderr;
  const inside = ({ name }: Container, script: string) => engine.podman(['exec', name, 'sh', '-c', script]);

  const database = start(engine, service('postgres'), 'postgres');
  const sandbox = start(engine, service('sandbox'), 'sandbox', { PUBLIC_URL: 'http://127.0.0.1:4010' });
  await until('the sandbox is healthy', () => isHealthy(sandbox));
  const web = start(engine, service('web'), 'web', { PORT: '3000' });
  // All containers share one network, so each worker needs its own port.
  const workers = [1, 2].map((i) => start(engine, service('worker'), `worker-${i}`, { PORT: String(3_000 + i) }));
  const [first, second] = workers as [Container, Container];
  for (const one of [web, ...workers])
    await until(`${one.name} is healthy`, () => isHealthy(one)).then(
      () => check(`${one.name} is healthy`, true),
      (error: unknown) => check(`${one.name} is healthy`, false, `${String(error)}\n${logsOf(one)}`),
    );

  const drive = (...args: string[]) =>
    engine.enter(
      [
        process.execPath,
        '--import',
        join(projectRoot, 'scripts/preload.mjs'),
        join(projectRoot, 'test/images/drive.ts'),
        ...args,
      ],
      {
        input: JSON.stringify({ adminKey: secrets['SANDBOX_ADMIN_KEY'] }),
      },
    );
  const run = drive('whole');
  check('a run is delivered', run.status === 0, `${run.stdout}${run.stderr}${logsOf(first)}${logsOf(second)}`);
  const begun = drive('begin');
  const session = begun.stdout.trim().split(' ');
  check(
    'a second run waits for approval',
    begun.status === 0 && session.length === 3,
    `${begun.stdout}${begun.stderr}`,
  );
  engine.podman(['kill', '--signal', 'KILL', first.name]);
  const ended = drive('end', ...session);
  check('a run is delivered after a worker was killed', ended.status === 0, `${ended.stdout}${ended.stderr}${logsOf(second)}`); // oxfmt-ignore

  for (const one of [web, second, sandbox]) {
    check(`${one.name} runs as the user node`, inside(one, 'id -u') === '1000');
    check(`the root of ${one.name} is read-only`, engine.enter(['podman', 'exec', one.name, 'touch', '/kit/node_modules/.cache/x']).status !== 0); // oxfmt-ignore
    const packages = Number(inside(one, 'grep -c SPDXID /kit/sbom.spdx.json || true'));
    check(`${one.name} lists its packages`, packages > 100, String(packages));
    const zombies = inside(one, "grep -lE '^State:.*Z' /proc/[0-9]*/status 2>/dev/null | wc -l");
    check(`${one.name} has no zombies`, zombies === '0', zombies);
  }
  const left = inside(second, 'find /data/work -type f | head');
  check('the worker left no file of a run on its volume', left === '', left);
  const began = performance.now();
  engine.podman(['stop', '--time', '20', second.name]);
  const code = engine.podman(['inspect', '--format', '{{.State.ExitCode}}', second.name]);
  check('a worker stops within 10 s, with exit code 0', code === '0' && performance.now() - began < 15_000, code);

  // OpenShift gives a user that the image does not know, in the group 0, and a volume that this user can write.
  const { tmpfs = [] } = service('worker');
  const anyUser = { ...service('worker'), volumes: [], tmpfs: [...tmpfs, '/data:mode=1777'] };
  const foreign = start(engine, anyUser, 'foreign', { PORT: '3003' }, ['--user', '1000650000:0']); // oxfmt-ignore
  await until(`${foreign.name} is healthy`, () => isHealthy(foreign)).catch(() => {});
  check('a user that the image does not know runs it', isHealthy(foreign) && inside(foreign, 'id -u') === '1000650000', logsOf(foreign)); // oxfmt-ignore
  engine.podman(['rm', '--force', '--time', '5', '--volumes', foreign.name]);

  engine.podman(['rm', '--force', '--time', '5', '--volumes', web.name]);
  // The same containers, with an app whose step attacks them.
  const hostileApp = '/kit/test/support/hostile-steps.ts';
  const mounted = ['--volume', `${join(projectRoot, 'test/support/hostile-steps.ts')}:${hostileApp}:ro`];
  const startHostile = ({ service: of }: Container, port: string) =>
    start(engine, of, `hostile-${port}`, { PORT: port, MY_APP: hostileApp }, mounted);
  const hostile = [startHostile(web, '3000'), startHostile(second, '3004')];
  for (const one of hostile) await until(`${one.name} is healthy`, () => isHealthy(one));
  const [, attacked] = hostile as [Container, Container];
  const isRefused = (said: string) => /Error\b/.test(said);
  // A child is process 1 in its PID namespace, so it reads its own environment.
  const hasNoSecret = (said: string) => said.length > 0 && !Object.values(secrets).some((secret) => said.includes(secret)); // oxfmt-ignore
  for (const [attack, target, control, isHeld] of [
    ['read', '/proc/1/environ', 'cat /proc/1/environ', hasNoSecret],
    ['read', '/etc/passwd', 'cat /etc/passwd', isRefused],
    ['write', '/data/left-behind', 'touch /data/tried && rm /data/tried', isRefused],
    ['tcp', '5432', `node -e "require('net').connect(5432, '127.0.0.1', () => process.exit(0))"`, isRefused],
    ['interfaces', '', 'true', isRefused],
    ['new-namespaces', '', 'unshare --user true', isRefused],
  ] as const) {
    const shows = engine.enter(['podman', 'exec', attacked.name, 'sh', '-c', control]).status === 0;
    const { stdout, stderr, status } = drive('hostile', attack, target);
    check(`a step in the image cannot ${attack} ${target}`, shows && status === 0 && isHeld(stdout), shows ? stdout + stderr : 'the control failed'); // oxfmt-ignore
  }
  for (const { name } of hostile) engine.podman(['rm', '--force', '--time', '5', '--volumes', name]);
  await playPods(engine, database, drive);
}

/** A manifest, with the parts that the test changes. */
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Record<string, string>;
  readonly spec: { readonly template: PodTemplate };
}

interface PodTemplate {
  readonly metadata: { annotations?: Record<string, string> };
  readonly spec: {
    restartPolicy?: string;
    readonly containers: readonly [PodContainer];
    readonly volumes?: readonly { name: string }[];
  };
}

interface PodContainer {
  readonly image: string;
  ports?: unknown;
  livenessProbe?: unknown;
  readonly env?: readonly { readonly name: string; value: string }[];
  readonly volumeMounts?: readonly { name: string }[];
}

/** The parts of the kustomization that the test reads. */
interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly literals: readonly string[] }[];
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
}

type Entered = ReturnType<Engine['enter']>;

/** The manifests of deploy/kubernetes by kubectl. Without it: with the settings and image names that its kustomization has. */
function renderManifests(): readonly Manifest[] {
  const folder = join(projectRoot, 'deploy/kubernetes');
  const manifestsIn = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  const rendered = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  if (!rendered.error) {
    check('kustomize renders the manifests', rendered.status === 0, rendered.stderr);
    return manifestsIn(rendered.stdout);
  }
  console.log('kubectl is not installed: the manifests are read without it');
  const { resources, configMapGenerator, images } = parse(
    readFileSync(join(folder, 'kustomization.yaml'), 'utf8'),
  ) as Kustomization;
  const settings = configMapGenerator.map(({ name, literals }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2) as [string, string])),
  }));
  const text = resources.map((name) => readFileSync(join(folder, name), 'utf8')).join('---\n');
  const named = images.reduce(
    (all, { name, newName, newTag }) => all.replaceAll(`image: ${name}\n`, `image: ${newName}:${newTag}\n`),
    text,
  );
  return [...(settings as unknown as Manifest[]), ...manifestsIn(named)];
}

/**
 * Migrates an empty database by the job of deploy/kubernetes, drives a run through a pod of web and a pod of worker, and replaces
 * both pods while another run waits.
 */
async function playPods(engine: Engine, database: Container, drive: (...args: string[]) => Entered): Promise<void> {
  const manifests = renderManifests();
  const settings = manifests.find(({ kind }) => kind === 'ConfigMap')!;
  settings.data['PLATFORM_URL'] = 'http://127.0.0.1:4010';

  build(engine, ['-t', `localhost/${prefix}-pause`, join(cache, 'empty')], `FROM ${nodeImage}\nCMD ["sleep", "infinity"]\nSTOPSIGNAL SIGKILL\n`); // oxfmt-ignore
  const profiles = join(cache, 'seccomp');
  mkdirSync(profiles, { recursive: true });
  cpSync(join(projectRoot, 'deploy/seccomp.json'), join(profiles, 'marketplace-app.json'));
  engine.podman(['exec', database.name, 'sh', '-c', 'PGPASSWORD=$POSTGRES_PASSWORD psql -h 127.0.0.1 -U app -c "create database pods" app']); // oxfmt-ignore
  const secret = {
    DATABASE_URL: `postgres://app:${secrets['POSTGRES_PASSWORD']}@127.0.0.1:5432/pods`,
    APP_SECRET: secrets['APP_SECRET']!,
    PLATFORM_API_KEY: secrets['SANDBOX_API_KEY']!,
  };
  // Podman's form of a Kubernetes secret.
  const encoded = Object.entries(secret).map(([name, value]) => [name, Buffer.from(value).toString('base64')]);
  const secretFile = join(cache, 'secret.json');
  writeFileSync(secretFile, JSON.stringify(Object.fromEntries(encoded)), { mode: 0o600 });
  engine.podman(['secret', 'create', 'marketplace-app', secretFile]);
  rmSync(secretFile);

  /** Plays the pod of a manifest, and returns the name of its container. `release` names the pod if there are several of one role. */
  function playPod(role: string, port: string, release = ''): string {
    const name = `${prefix}-pod-${role}${release}`;
    const { metadata, spec } = structuredClone(
      manifests.find((one) => one.spec?.template && one.metadata.name === role)!.spec.template,
    );
    const [container] = spec.containers;
    engine.podman(['tag', `localhost/${prefix}-app`, container.image]);
    // Podman differs from Kubernetes: annotations name the seccomp profiles, ports need a bridge, a probe runs curl in the
    // container, and emptyDir volumes of one name are one volume. A pod must not restart after an interrupted test.
    metadata.annotations = {
      ...metadata.annotations,
      'container.seccomp.security.alpha.kubernetes.io/app': 'localhost/marketplace-app.json',
    };
    delete container.ports;
    delete container.livenessProbe;
    spec.restartPolicy = 'Never';
    for (const variable of container.env ?? []) if (variable.name === 'PORT') variable.value = port;
    for (const volume of [...(spec.volumes ?? []), ...(container.volumeMounts ?? [])])
      volume.name = `${name}-${volume.name}`;
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name }, spec };
    const file = join(cache, `${role}${release}.yaml`);
    writeFileSync(file, [settings, pod].map((one) => stringify(one)).join('---\n'));
    engine.podman(['kube', 'play', '--network', 'host', '--seccomp-profile-root', profiles, file]);
    return `${name}-app`;
  }
  const logsOf = (container: string) => engine.enter(['podman', 'logs', container]);

  const job = playPod('migrate', '');
  const migrated = engine.podman(['wait', job]);
  check('the job migrates an empty database', migrated === '0', `${logsOf(job).stdout}${logsOf(job).stderr}`);

  /** Asks a pod from inside. */
  const asker = (name: string, port: string) => (path: string) =>
    engine.enter(['podman', 'exec', name, 'node', '-e', `fetch('http://127.0.0.1:${port}${path}').then(async (r) => console.log(r.status, await r.text()))`]).stdout; // oxfmt-ignore
  const isReady = (name: string, port: string) =>
    until(`${name} is ready`, () => asker(name, port)('/ready').startsWith('200 ')).catch(() => {});

  for (const [role, port] of Object.entries({ web: '3000', worker: '3001' })) {
    const name = playPod(role, port);
    const exec = (...args: string[]) => engine.enter(['podman', 'exec', name, ...args]);
    const ask = asker(name, port);
    await isReady(name, port);
    for (const path of ['/health', '/ready']) {
      const answer = ask(path);
      check(`${name} answers ${path}`, answer.startsWith('200 '), `${answer}${logsOf(name).stderr}`);
    }
    check(`${name} confines its children`, ask('/ready').includes('"confinement":"bubblewrap'), ask('/ready'));
    check(`${name} has the shipped seccomp profile`, exec('unshare', '--user', 'true').status === 0 && exec('unshare', '--user', '--net', 'true').status !== 0); // oxfmt-ignore
    check(`${name} has a user namespace`, /^\s*0\s+[1-9]/.test(exec('cat', '/proc/self/uid_map').stdout));
    check(`${name} runs as the user node`, exec('id', '-u').stdout.trim() === '1000');
    check(`the root of ${name} is read-only`, exec('touch', '/kit/node_modules/.cache/x').status !== 0);
  }
  const run = drive('whole');
  check('a run is delivered by the pods', run.status === 0, `${run.stdout}${run.stderr}`);

  // A roll-out: the new pods come first, then the old ones end. All pods share one loopback, so a new web has the port of the old one.
  const waiting = drive('begin').stdout.trim().split(' ');
  const next = playPod('worker', '3002', '-next');
  await isReady(next, '3002');
  for (const [role, grace] of [
    ['worker', '60'],
    ['web', '30'],
  ] as const) {
    // oxfmt-ignore
    const pod = `${prefix}-pod-${role}`;
    engine.podman(['pod', 'stop', '--time', grace, pod]);
    const code = engine.podman(['inspect', '--format', '{{.State.ExitCode}}', `${pod}-app`]);
    check(`the old pod of ${role} stops with exit code 0`, code === '0', code);
  }
  await isReady(playPod('web', '3000', '-next'), '3000');
  const rolled = drive('end', ...waiting);
  check('a run that waited through the roll-out is delivered by the new pods', rolled.status === 0, `${rolled.stdout}${rolled.stderr}${logsOf(next).stderr}`); // oxfmt-ignore
}

/** Removes the pods, the containers, the volumes and the secret of the test. */
function clear(engine: Engine): void {
  for (const name of engine.podman(['pod', 'ls', '--format', '{{.Name}}']).split('\n')) {
    if (!name.startsWith(prefix)) continue;
    // The first call may find the shared memory of the pod in use.
    const remove = ['pod', 'rm', '--force', '--time', '5', name];
    if (engine.enter(['podman', ...remove]).status !== 0) engine.podman(remove);
  }
  engine.enter(['podman', 'secret', 'rm', 'marketplace-app']);
  for (const name of engine.podman(['ps', '--all', '--format', '{{.Names}}']).split('\n'))
    if (name.startsWith(prefix)) engine.podman(['rm', '--force', '--time', '5', '--volumes', name]);
  for (const name of engine.podman(['volume', 'ls', '--format', '{{.Name}}']).split('\n'))
    if (name.startsWith(prefix)) engine.podman(['volume', 'rm', '--force', name]);
}

function requireEngine(): void {
  if (process.platform !== 'linux') throw new Skipped(`it needs Linux, and this is ${process.platform}`);
  if (process.getuid?.() !== 0) throw new Skipped('it needs root, for namespaces and for the storage of images');
  for (const program of ['podman', 'crun', 'nsenter', 'ip', 'debootstrap'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      throw new Skipped(`${program} is not installed: sudo apt-get install podman crun iproute2 debootstrap`);
  if (!existsSync('/etc/debian_version')) throw new Skipped('it needs Debian, to make base images');
}

let engine: Engine | null = null;
let leaveCache = () => {};
function cleanUp(): void {
  const ending = engine;
  engine = null;
  try {
    if (ending) clear(ending);
  } finally {
    ending?.close();
    leaveCache();
  }
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    cleanUp();
    process.exit(130);
  });
try {
  requireEngine();
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  leaveCache = ownFolder(cache);
  engine = new Engine();
  await engine.ready();
  await play(engine);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
} catch (error) {
  if (!(error instanceof Skipped || error instanceof FolderInUseError)) throw error;
  console.log(`test:images skipped: ${error.message}`);
} finally {
  cleanUp();
}
