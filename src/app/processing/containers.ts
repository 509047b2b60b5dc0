/** Programs in a container image, by a container engine with Docker's command line. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, constants, copyFile, link, mkdir, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { KitError } from '../../contract/index.ts';
import { folderBytes, planLending, removeFolder, takePlainFile, type LentFile } from '../../raster/index.ts';
import type { ContainerAnswer, ContainerQuestion } from './container-messages.ts';
import { inContainer } from '../../steps/container.ts';
import { readProgress, type Command } from '../../steps/command.ts';

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
  /** Runs the program, without network and without privileges, until it ends. Rejects with the signal's reason, or with `job_disk_exceeded`; then it is gone. */
  run(task: ContainerTask, options: ContainerOptions): Promise<ContainerAnswer>;
}

/** Whom the container runs as where the app is root. */
const nobody = 65_534;
const lookEveryMs = 500;
const tailCharacters = 2_000;
const lineCharacters = 2_000;
/** The engine's own failure, not the program's. */
const engineFailed = 125;
/** Of the app's environment, what an engine's client asks for; never a secret of the app. */
const clientVariables =
  /^(PATH|HOME|USER|TMPDIR|XDG_[A-Z_]+|DOCKER_[A-Z_]+|CONTAINER_HOST|CONTAINERS_[A-Z_]+|DBUS_SESSION_BUS_ADDRESS)$/;

/** `engine`: the program, such as `docker` or `podman`. */
export function createContainers(engine: string): Containers {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => clientVariables.test(name)));
  const isPodman = /podman/.test(basename(engine));
  const uid = process.getuid?.() ?? nobody;
  const gid = process.getgid?.() ?? nobody;
  const [user, group] = uid === 0 ? [nobody, nobody] : [uid, gid];

  /** Runs the engine's client to its end. */
  function call(args: readonly string[]): Promise<{ code: number | null; errors: string }> {
    return new Promise((resolve, reject) => {
      const client = spawn(engine, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
      let errors = '';
      client.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-tailCharacters)));
      client.once('error', (error: NodeJS.ErrnoException) => reject(notThere(error)));
      client.once('close', (code) => resolve({ code, errors }));
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

  const notThere = ({ code }: NodeJS.ErrnoException) =>
    new KitError(
      'no_container_engine',
      `the container engine ${engine} (CONTAINER_ENGINE) cannot be started: ${code}`,
      {
        status: 503,
        data: { isForUser: true },
      },
    );

  /** Makes a file of the host readable in the container, by a link where that does. */
  async function lend(from: string, to: string): Promise<void> {
    await mkdir(join(to, '..'), { recursive: true });
    const isReadable = uid !== 0 || ((await stat(from)).mode & 0o004) !== 0;
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

  return {
    async require(image) {
      const { code, errors } = await call(['image', 'inspect', image]);
      if (code === 0) return;
      throw new KitError(
        'no_container_image',
        `the step runs in the image ${image}, which ${engine} does not have: ${engine} pull ${image} (${errors.trim().split('\n').at(-1) ?? ''})`,
        { status: 503, data: { isForUser: true } },
      );
    },

    async run({ image, question, progress, inputs, stepFolder, folder, limits }, { signal, onProgress, onPrinted }) {
      signal.throwIfAborted();
      await removeFolder(folder);
      const at = { input: join(folder, 'input'), work: join(folder, 'work'), output: join(folder, 'output') };
      for (const one of Object.values(at)) await mkdir(one, { recursive: true });
      for (const { from, to } of planLending(inputs, at.input).lends) await lend(from, to);
      for (const name of question.gives) {
        const to = join(at.input, inContainer.given, name);
        await takePlainFile(join(stepFolder, name), to);
        await chmod(to, 0o444);
      }
      for (const [name, text] of Object.entries(question.files)) await writeFile(join(at.work, name), text);
      if (uid === 0) for (const one of [at.work, at.output]) await chown(one, user, group);

      const name = `marketplace-app-${randomBytes(9).toString('hex')}`;
      const args = [
        ...[
          'run',
          '--rm',
          '--name',
          name,
          '--pull',
          'never',
          '--network',
          'none',
          '--read-only',
          '--log-driver',
          'none',
        ],
        ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--pids-limit', '256'],
        ...['--user', `${user}:${group}`, ...(isPodman && uid !== 0 ? ['--userns', 'keep-id'] : [])],
        ...['--memory', String(limits.memoryBytes), '--memory-swap', String(limits.memoryBytes)],
        ...['--ulimit', `fsize=${limits.diskBytes}:${limits.diskBytes}`, '--ulimit', 'core=0:0'],
        // Named here, as some engines otherwise ask for more than a machine gives them.
        ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'],
        ...['--tmpfs', '/tmp:rw,nosuid,nodev,size=64m', '--env', `HOME=${inContainer.work}`],
        ...['--volume', `${at.input}:${inContainer.inputs}:ro`],
        ...['--volume', `${at.work}:${inContainer.work}`, '--volume', `${at.output}:${inContainer.outputs}`],
        ...['--workdir', inContainer.work, image, ...question.argv],
      ];
      const client = spawn(engine, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
      let errors = '';
      let ending: unknown = null;
      const end = (reason: unknown) => {
        if (ending !== null) return;
        ending = reason;
        void remove(name);
      };
      const onAbort = () => end(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const read = readProgress(progress, onProgress, (line) => onPrinted(line.slice(0, lineCharacters)));
      client.stdout.setEncoding('utf8').on('data', read);
      createInterface({ input: client.stderr }).on('line', (line) => {
        errors = `${errors}${line}\n`.slice(-tailCharacters);
        onPrinted(line.slice(0, lineCharacters));
      });
      const over = new AbortController();
      void watchFolder(folder, limits.diskBytes, over.signal).then((isOver) => {
        if (isOver) end(tooMuch(limits.diskBytes));
      });
      try {
        const exitCode = await new Promise<number | null>((resolve, reject) => {
          client.once('error', (error: NodeJS.ErrnoException) => reject(notThere(error)));
          client.once('close', (code) => resolve(code));
        });
        if (ending === null && (await folderBytes(folder)) > limits.diskBytes) ending = tooMuch(limits.diskBytes);
        if (ending !== null) {
          // Where the client ended first, the container may still be ending.
          await remove(name);
          throw ending as Error;
        }
        if (exitCode === engineFailed)
          throw new KitError('container_not_started', `${engine} could not run the image ${image}: ${errors.trim()}`);
        return { exitCode, errors, folder };
      } finally {
        over.abort();
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

const tooMuch = (bytes: number) =>
  new KitError('job_disk_exceeded', `the processing wrote more than the ${bytes} bytes it may`, { status: 422 });

/** True as soon as it is too large; false when there is nothing to watch any more. */
async function watchFolder(folder: string, bytes: number, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if ((await folderBytes(folder)) > bytes) return true;
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
  return false;
}
