/** Programs in a container image, by a container engine with Docker's command line. */
import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, chown, constants, copyFile, link, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { KitError } from '../../contract/index.ts';
import { ChildJobError, limitError, LineSplitter, planLending, type LentFile } from '../../child/index.ts';
import { folderBytes, removeFolder, copyPlainFile } from '../../files/index.ts';
import type { ContainerAnswer, ContainerQuestion } from './container-messages.ts';
import { inContainer } from '../../steps/container.ts';
import { percentOf, progressOf, type Command } from '../../steps/command.ts';

export interface ContainerTask {
  readonly image: string;
  readonly question: ContainerQuestion;
  readonly progress: Command['progress'];
  /** The container finds each as `inContainer.input(i, name)`. */
  readonly inputs: readonly LentFile[];
  readonly stepFolder: string;
  /** Made here. */
  readonly folder: string;
  readonly limits: { readonly memoryBytes: number; readonly diskBytes: number };
}

export interface ContainerOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, note: string | null) => void;
  /** Each line that the program writes, but for those that tell progress. */
  readonly onPrinted: (line: string) => void;
}

export interface Containers {
  /** Throws `KitError` (503) where the engine does not answer, or has no such image. */
  require(image: string): Promise<void>;
  /** Removes what a process that was killed has left running; how many. Call it before the first `run`. */
  sweep(): Promise<number>;
  /** Runs the program, without network and without privileges, until it ends. Rejects with the signal's reason, or with `job_disk_exceeded`; then it is gone. */
  run(task: ContainerTask, options: ContainerOptions): Promise<ContainerAnswer>;
}

/** Whom the container runs as where the app is root. */
const nobody = 65_534;
const lookEveryMs = 500;
const tailCharacters = 2_000;
const maxSaid = 1_000_000;
const callMs = 30_000;
/** Time for which an image that was found counts as present. */
const knownMs = 60_000;
/** Length of each pause in reading, if a program writes faster than the lines are used. */
const breathMs = 50;
/** The engine's own failure, not the program's. */
const engineFailed = 125;
/** By what a program ends that the kernel has ended: for its memory, or for the size of a file. */
const ended = { byMemory: 128 + 9, byFileSize: 128 + 25 };
/** Variables of the app's environment that an engine's client needs. None is a secret of the app. */
const clientVariables =
  /^(PATH|HOME|USER|TMPDIR|XDG_[A-Z_]+|DOCKER_[A-Z_]+|CONTAINER_HOST|CONTAINERS_[A-Z_]+|DBUS_SESSION_BUS_ADDRESS)$/;

/** `engine`: the program, such as `docker` or `podman`. `owner`: what tells this app's containers from others', after a kill too. */
export function createContainers(engine: string, owner: string): Containers {
  const label = `marketplace-app-kit=${createHash('sha256').update(owner).digest('hex').slice(0, 32)}`;
  const known = new Map<string, number>();
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => clientVariables.test(name)));
  const isPodman = /podman/.test(basename(engine));
  const uid = process.getuid?.() ?? nobody;
  const gid = process.getgid?.() ?? nobody;
  const [user, group] = uid === 0 ? [nobody, nobody] : [uid, gid];

  /** Runs the engine's client to its end. */
  function call(args: readonly string[]): Promise<{ code: number | null; errors: string; said: string }> {
    return new Promise((resolve, reject) => {
      const client = spawn(engine, args, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: callMs });
      let [errors, said] = ['', ''];
      client.stdout.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(0, maxSaid)));
      client.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-tailCharacters)));
      client.once('error', (error: NodeJS.ErrnoException) => reject(notThere(engine, error)));
      client.once('close', (code) => resolve({ code, errors, said }));
    });
  }

  /** `rm --force` alone waits for a program to end by itself first. */
  async function remove(name: string): Promise<void> {
    for (const args of [
      ['kill', name],
      ['rm', '--force', name],
    ])
      await call(args).catch(() => {});
  }

  /** Makes the folders of a run, with the files that the program may read. */
  async function makeFolders({
    question,
    inputs,
    stepFolder,
    folder,
  }: Pick<ContainerTask, 'question' | 'inputs' | 'stepFolder' | 'folder'>) {
    await removeFolder(folder);
    const at = { input: join(folder, 'input'), work: join(folder, 'work'), output: join(folder, 'output') };
    for (const path of Object.values(at)) await mkdir(path, { recursive: true });
    for (const { from, to } of planLending(inputs, at.input).lends) await lend(from, to, uid === 0);
    for (const name of question.gives) {
      const to = join(at.input, inContainer.given, name);
      await copyPlainFile(join(stepFolder, name), to);
      await chmod(to, 0o444);
    }
    for (const [name, text] of Object.entries(question.files)) await writeFile(join(at.work, name), text);
    if (uid === 0)
      for (const path of [at.work, at.output, ...Object.keys(question.files).map((name) => join(at.work, name))])
        await chown(path, user, group);
    // The modes must not depend on the umask.
    for (const entry of await readdir(at.input, { withFileTypes: true }))
      if (entry.isDirectory()) await chmod(join(at.input, entry.name), 0o755);
    await chmod(at.input, 0o755);
    return at;
  }

  return {
    async require(image) {
      if ((known.get(image) ?? 0) > performance.now()) return;
      const { code, errors } = await call(['image', 'inspect', image]);
      if (code === 0) return void known.set(image, performance.now() + knownMs);
      const isMissing = /no such image|no such object|not known|not found/i.test(errors);
      throw new KitError(
        isMissing ? 'no_container_image' : 'no_container_engine',
        isMissing
          ? `the step runs in the image ${image}, which ${engine} does not have: build it, or ${engine} pull ${image}`
          : `the container engine ${engine} (CONTAINER_ENGINE) does not answer: see whether ${engine} image inspect ${image} works`,
        { status: 503, data: { isForUser: true, stderr: errors } },
      );
    },

    async sweep() {
      const { said } = await call(['ps', '--all', '--quiet', '--filter', `label=${label}`]);
      const left = said.split('\n').filter((id) => /^[0-9a-f]{6,}$/.test(id));
      if (left.length > 0) await call(['rm', '--force', ...left]);
      return left.length;
    },

    async run({ image, question, progress, inputs, stepFolder, folder, limits }, { signal, onProgress, onPrinted }) {
      signal.throwIfAborted();
      const at = await makeFolders({ question, inputs, stepFolder, folder });

      const name = `marketplace-app-${randomBytes(9).toString('hex')}`;
      const args = runArguments(
        name,
        at,
        { image, question, limits },
        { label, user, group, keepsId: isPodman && uid !== 0 },
      );
      signal.throwIfAborted();
      const client = spawn(engine, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      let isClosed = false;
      let ending: unknown = null;
      // An engine that is about to make the container does not know it yet.
      const untilRemoved = async () => {
        for (; !isClosed; await sleep(lookEveryMs)) await remove(name);
      };
      const end = (reason: unknown) => {
        if (ending !== null) return;
        ending = reason;
        void untilRemoved();
      };
      const onAbort = () => end(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const lastErrors = readOutput(client, progress, { onProgress, onPrinted });
      const over = new AbortController();
      const written = async () => (await folderBytes(at.work)) + (await folderBytes(at.output));
      void watch(written, limits.diskBytes, over.signal).then((isOver) => {
        if (isOver) end(tooMuch(limits));
      });
      try {
        const exitCode = await new Promise<number | null>((resolve, reject) => {
          client.once('error', ({ code }: NodeJS.ErrnoException) =>
            reject(
              new ChildJobError('container_not_started', `the container engine cannot be started: ${code}`, {
                kind: 'transient',
              }),
            ),
          );
          client.once('close', (code) => resolve(code));
        });
        isClosed = true;
        if (ending === null && (exitCode === ended.byFileSize || (await written()) > limits.diskBytes))
          ending = tooMuch(limits);
        if (ending === null && exitCode === ended.byMemory)
          ending = limitError('job_memory_exceeded', 'used more memory than', limits.memoryBytes, 'bytes');
        // If the client ended in another way than the program, the container may still exist.
        if (ending !== null || exitCode === null || exitCode === engineFailed) await remove(name);
        // Functions above set it, which TypeScript does not see here.
        if (ending !== null) throw ending as Error;
        if (exitCode === null || exitCode === engineFailed)
          throw new ChildJobError('container_not_started', `the container engine could not run the image ${image}`, {
            kind: 'transient',
            data: { stderr: lastErrors() },
          });
        // The step's process, which reads this, may run as another user than the program did. It is gone by now.
        if (uid === 0) await makeReadable(folder);
        return { exitCode, errors: lastErrors(), folder };
      } finally {
        isClosed = true;
        over.abort();
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

/** Arguments of the engine that run a program without network and without privileges. */
function runArguments(
  name: string,
  at: Readonly<Record<'input' | 'work' | 'output', string>>,
  { image, question, limits }: Pick<ContainerTask, 'image' | 'question' | 'limits'>,
  {
    label,
    user,
    group,
    keepsId,
  }: { readonly label: string; readonly user: number; readonly group: number; readonly keepsId: boolean },
): string[] {
  const [program = '', ...words] = question.argv;
  return [
    ...['run', '--rm', '--name', name, '--pull', 'never', '--network', 'none', '--read-only', '--log-driver', 'none'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--pids-limit', '256'],
    ...['--security-opt', 'label=disable', '--label', label],
    ...['--user', `${user}:${group}`, ...(keepsId ? ['--userns', 'keep-id'] : [])],
    ...['--memory', String(limits.memoryBytes), '--memory-swap', String(limits.memoryBytes)],
    ...['--ulimit', `fsize=${limits.diskBytes}:${limits.diskBytes}`, '--ulimit', 'core=0:0'],
    // Named here, as some engines otherwise ask for more than a machine gives them.
    ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
    ...['--tmpfs', '/tmp:rw,nosuid,nodev,size=64m', '--env', `HOME=${inContainer.work}`],
    // For the kit's helper in Python.
    ...['--env', 'MARKETPLACE_PROGRESS=stdout'],
    ...['--volume', `${at.input}:${inContainer.inputs}:ro`],
    ...['--volume', `${at.work}:${inContainer.work}`, '--volume', `${at.output}:${inContainer.outputs}`],
    ...['--workdir', inContainer.work, '--entrypoint', program, image, ...words],
  ];
}

/** Makes a file of the host readable in the container, by a link where that does. */
async function lend(from: string, to: string, isRoot: boolean): Promise<void> {
  await mkdir(join(to, '..'), { recursive: true });
  const isReadable = !isRoot || ((await stat(from)).mode & 0o004) !== 0;
  const linked =
    isReadable &&
    (await link(from, to).then(
      () => true,
      () => false,
    ));
  if (linked) return;
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o444);
}

/** Reads the output of a program line by line. Returns a function that returns the last characters of its stderr. */
function readOutput(
  client: ChildProcessByStdio<null, Readable, Readable>,
  progress: ContainerTask['progress'],
  { onProgress, onPrinted }: Pick<ContainerOptions, 'onProgress' | 'onPrinted'>,
): () => string {
  let errors = '';
  const percent = progress === 'percent' ? percentOf() : null;
  const outLines = new LineSplitter((line) => {
    const reported = percent ? null : progressOf(line);
    if (reported) onProgress(reported.progress, reported.note ?? null);
    else if (!percent) onPrinted(line);
  });
  const errorLines = new LineSplitter((line) => {
    errors = `${errors}${line}\n`.slice(-tailCharacters);
    onPrinted(line);
  });
  for (const [stream, lines] of [
    [client.stdout, outLines],
    [client.stderr, errorLines],
  ] as const)
    stream
      .setEncoding('utf8')
      .on('data', (text: string) => {
        const fraction = lines === outLines ? percent?.(text) : undefined;
        if (fraction !== undefined) onProgress(fraction, null);
        lines.add(text);
        if (!lines.isOver) return;
        stream.pause();
        setTimeout(() => stream.resume(), breathMs);
      })
      .on('end', () => lines.end());
  return () => errors;
}

const notThere = (engine: string, { code }: NodeJS.ErrnoException) =>
  new KitError(
    'no_container_engine',
    code === 'ENOENT'
      ? `there is no program ${engine} (CONTAINER_ENGINE) where the app runs: set it to docker or podman`
      : `the container engine ${engine} (CONTAINER_ENGINE) cannot be started: ${code}`,
    {
      status: 503,
      data: { isForUser: true },
    },
  );

/** Follows no link. */
const makeReadable = (folder: string) => promisify(execFile)('chmod', ['-R', 'a+rX', '--', folder]);

const tooMuch = ({ diskBytes }: ContainerTask['limits']) =>
  limitError('job_disk_exceeded', 'wrote more than', diskBytes, 'bytes');

/** True as soon as it is too much; false when there is nothing to watch any more. */
async function watch(written: () => Promise<number>, bytes: number, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if ((await written()) > bytes) return true;
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
  return false;
}
