import { randomBytes } from 'node:crypto';
import { watch, type FSWatcher } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { KitError } from '../contract/index.ts';
import { onInterrupt, runCommand } from './command.ts';
import { startService, type ServiceProcess } from './service-process.ts';
import { sandboxCall } from './sandbox-call.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const usage = 'usage: npm run dev -- [--port N] [--app-port N] [--data DIR]';
/** Editors write a file in several steps. */
const settleMs = 200;

/** Folders below the project whose changes concern a service. */
const concerns = {
  sandbox: ['src/sandbox', 'src/contract', 'src/raster', 'src/commands', 'templates/sandbox', 'templates/shared', 'models'],
  app: ['src/app', 'src/steps', 'src/platform-client', 'src/contract', 'src/raster', 'src/commands', 'templates/app', 'templates/shared'],
} as const;
type Name = keyof typeof concerns;

await runCommand(async () => {
  const { port, 'app-port': appPort, data } = readOptions();
  const folder = resolve(process.env['INIT_CWD'] ?? process.cwd(), data);
  const apiKey = process.env['SANDBOX_API_KEY'] ?? randomBytes(24).toString('base64url');
  const running = new Map<Name, ServiceProcess>();
  const watchers: FSWatcher[] = [];
  const restarts = new Set<Promise<void>>();
  let isStopping = false;
  const interrupted = new Promise<number>((stop) => {
    onInterrupt(() => stop(0));
  });

  const start: Record<Name, () => Promise<ServiceProcess>> = {
    sandbox: () => startService('sandbox', ['--port', port, '--data', join(folder, 'sandbox')], { SANDBOX_API_KEY: apiKey }),
    app: () => startService('app', [], { PLATFORM_URL: running.get('sandbox')!.url, PLATFORM_API_KEY: apiKey, DATA_DIR: join(folder, 'app'), PORT: appPort, EMBEDDED_IN: running.get('sandbox')!.url, HOST: '127.0.0.1' }),
  };
  async function restart(name: Name): Promise<void> {
    const before = running.get(name);
    running.delete(name);
    await before?.stop(3_000);
    const service = await start[name]();
    if (isStopping) return service.stop();
    // It may end by itself, as with a mistake in the code: the next change starts it anew.
    service.ended.catch((error: unknown) => running.get(name) === service && (running.delete(name), console.error(String((error as Error).message))));
    running.set(name, service);
    // Where the port is any free one the app has another address each time.
    if (name === 'app') await sandboxCall(running.get('sandbox')!, 'apps', { id: 'reference-app', name: 'Reference app', description: 'The app of this kit, restarted whenever its code changes.', launchUrl: `${service.url}/launch` });
  }

  try {
    for (const name of ['sandbox', 'app'] as const) await restart(name);
    console.log(`sandbox  ${running.get('sandbox')!.url}\napp      ${running.get('app')!.url}\nBoth restart when their code or templates change. Ctrl-C ends them.`);
    for (const name of ['sandbox', 'app'] as const) watchers.push(...watchFor(name, () => {
      const restarted = restart(name).then(() => console.log(`${name} restarted`), (error: unknown) => console.error(`${name} does not start: ${(error as Error).message}`));
      restarts.add(restarted);
      return restarted.finally(() => restarts.delete(restarted));
    }));
    return await interrupted;
  } finally {
    isStopping = true;
    watchers.forEach((watcher) => watcher.close());
    await Promise.all(restarts);
    const services = [...running.values()];
    running.clear();
    await Promise.all(services.map((service) => service.stop()));
  }
});

/** Calls `onChange` when something in the folders of a service has changed, once for changes that come together, one call at a time. */
function watchFor(name: Name, onChange: () => Promise<void>): FSWatcher[] {
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const touched = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (last = last.then(onChange)), settleMs);
  };
  return concerns[name].map((path) => watch(join(root, path), { recursive: true }, touched));
}

function readOptions() {
  try {
    return parseArgs({ options: { port: { type: 'string', default: '4010' }, 'app-port': { type: 'string', default: '3000' }, data: { type: 'string', default: 'data/dev' } } }).values;
  } catch (error) {
    throw new KitError('bad_arguments', `${(error as Error).message}\n${usage}`);
  }
}
