import { randomBytes } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import openInBrowser from 'open';
import { isLoopbackName, type AppManifest } from '../contract/index.ts';
import { kitFolder, messageOf, scriptCommand } from '../files/index.ts';
import { readSecret } from '../sandbox/config.ts';
import { callerFolder } from './arguments.ts';
import { appPermissions } from './permissions.ts';
import { onInterrupt, defineCommand } from './command.ts';
import { makeCertificate } from './dev/certificate.ts';
import { logLines } from './dev/log-lines.ts';
import { watchFiles, type FileWatch } from './dev/watch-files.ts';
import { loadMyApp } from './my-app.ts';
import { startService, type ServiceProcess } from './service-process.ts';
import { sandboxCall } from '../testing/sandbox-call.ts';

const root = kitFolder('.');
/** A real scene of a real coast, with the app one click away. */
const firstScene = '/catalog/olinda-coast/olinda-landsat7';

const usage = `usage: ${scriptCommand('dev')} [options]: sandbox and app together, each restarted when its code or templates change

  --port N         Port of the sandbox (default: 4010; 0 takes any free one)
  --app-port N     Port of the app (default: 3000)
  --host ADDRESS   Address to listen on; another one than loopback lets other machines in (default: 127.0.0.1)
  --data DIR       Folder of both (default: data/dev)
  --import PATH    Items, rasters, or a folder of a scene, for the catalog; repeatable
  --permissions LIST  Permissions of the app's key, with commas (default: external_app)
  --inspect-steps PORT  Each step waits at this port for a debugger, unconfined
  --https          Both speak HTTPS by a certificate that is made on the spot, for cookies in frames
  --no-open        Do not open the browser`;

/** Files of the kit whose changes concern a service; of an installed kit there are fewer. */
const concerns = {
  sandbox: [
    'src/sandbox',
    'src/contract',
    'src/raster',
    'src/commands',
    'templates/sandbox',
    'templates/shared',
    'scripts/preload.mjs',
  ],
  app: [
    'src/app',
    'src/steps',
    'src/platform-client',
    'src/contract',
    'src/raster',
    'src/commands',
    'templates/app',
    'templates/shared',
    'scripts/preload.mjs',
  ],
} as const;
type Name = keyof typeof concerns;

export default defineCommand(import.meta, {
  usage,
  options: {
    port: { type: 'string', default: '4010' },
    'app-port': { type: 'string', default: '3000' },
    'inspect-steps': { type: 'string' },
    host: { type: 'string', default: '127.0.0.1' },
    data: { type: 'string', default: 'data/dev' },
    import: { type: 'string', multiple: true, default: [] },
    permissions: { type: 'string' },
    https: { type: 'boolean', default: false },
    'no-open': { type: 'boolean', default: false },
  },
  async run({ values: options }) {
    const definition = await loadMyApp();
    const appFolder = dirname(fileURLToPath(definition.module));
    const own: Record<Name, string[]> = {
      sandbox: [join(appFolder, 'profile.ts')],
      app: [appFolder, ...(definition.templates ? [fileURLToPath(definition.templates)] : [])],
    };
    const folder = resolve(callerFolder(), options.data);
    const apiKey = readSecret(process.env, 'SANDBOX_API_KEY') ?? randomBytes(24).toString('base64url');
    const permissions = appPermissions(options.permissions, usage);
    // Without an admin key, everybody who can reach the sandbox from another machine could approve operations.
    const adminKey = isLoopbackName(options.host) ? '' : randomBytes(24).toString('base64url');
    const running = new Map<Name, ServiceProcess>();
    /** First address of each service; empty before. A restart keeps it. */
    const urls: Record<Name, string> = { sandbox: '', app: '' };
    const watches: FileWatch[] = [];
    let toImport = options.import.map((path) => resolve(callerFolder(), path));
    let isStopping = false;
    const interrupted = new Promise<number>((stop) => {
      onInterrupt(() => stop(0));
    });

    const firstPage = options.import.length > 0 ? '/catalog' : firstScene;
    const portOf = (name: Name, first: string) => (urls[name] === '' ? first : new URL(urls[name]).port);
    const certificate = options.https ? await makeCertificate(join(folder, 'tls')) : null;
    const encrypted: Record<string, string> = certificate
      ? { TLS_CERT: certificate.certFile, TLS_KEY: certificate.keyFile, NODE_EXTRA_CA_CERTS: certificate.certFile }
      : {};
    const shared = { ...encrypted, HOST: options.host, LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'info' };
    const output = (name: Name) => {
      const lineOf = logLines(name, process.stderr.isTTY);
      return {
        onLog: (line: string) => console.error(lineOf(line)),
        onOutput: (line: string) => console.log(lineOf(line)),
      };
    };
    const start: Record<Name, () => Promise<ServiceProcess>> = {
      sandbox: () =>
        startService(
          'sandbox',
          [
            '--port',
            portOf('sandbox', options.port),
            '--data',
            join(folder, 'sandbox'),
            '--profile',
            fileURLToPath(definition.module),
            ...toImport.flatMap((path) => ['--import', path]),
          ],
          {
            ...shared,
            SANDBOX_API_KEY: apiKey,
            SANDBOX_API_KEY_PERMISSIONS: permissions.join(','),
            SANDBOX_ADMIN_KEY: adminKey,
          },
          output('sandbox'),
        ),
      app: () =>
        startService(
          'app',
          [],
          {
            ...shared,
            PLATFORM_URL: urls.sandbox,
            PLATFORM_API_KEY: apiKey,
            DATA_DIR: join(folder, 'app'),
            PORT: portOf('app', options['app-port']),
            EMBEDDED_IN: urls.sandbox,
            SHOW_DEFECTS: process.env['SHOW_DEFECTS'] ?? 'true',
            ...(options['inspect-steps'] === undefined
              ? {}
              : { STEP_INSPECT: options['inspect-steps'], STEP_CONFINEMENT: 'none' }),
          },
          output('app'),
        ),
    };
    async function restart(name: Name): Promise<void> {
      const before = running.get(name);
      running.delete(name);
      await before?.stop(3_000);
      if (isStopping) return;
      const service = await start[name]();
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- a signal sets it during an await
      if (isStopping) return service.stop();
      // A service ends if its code has a mistake. The next change starts it again.
      service.ended.catch(
        (error: unknown) => running.get(name) === service && (running.delete(name), console.error(messageOf(error))),
      );
      running.set(name, service);
      urls[name] = service.url;
      if (name === 'sandbox') toImport = [];
      // A sandbox that is just ending learns of it when it is back.
      await registerApp().catch((error: unknown) =>
        console.error(`the app is not in the marketplace yet: ${messageOf(error)}`),
      );
    }
    /** Runs after either one starts: a sandbox that is not running now learns of the app once it runs. */
    async function registerApp(): Promise<void> {
      const sandbox = running.get('sandbox');
      const { app } = urls;
      if (!sandbox || app === '') return;
      await sandboxCall({ url: sandbox.url, adminKey }, 'registerApp', {
        body: { ...(await fetchManifest(app)), launchUrl: `${app}/launch` },
      });
    }

    try {
      // Before they start, so that a change meanwhile is seen.
      const ready = Promise.withResolvers<void>();
      for (const name of ['sandbox', 'app'] as const) {
        const onChange = async () => {
          await ready.promise;
          if (isStopping) return;
          await restart(name).then(
            () => console.log(`${name} restarted`),
            (error: unknown) => console.error(`${name} does not start: ${messageOf(error)}`),
          );
        };
        watches.push(
          await watchFiles(root, [...concerns[name], ...own[name]], onChange, (error) =>
            console.error(`dev may miss changes: ${messageOf(error)}`),
          ),
        );
      }
      const startBoth = async () => {
        for (const name of ['sandbox', 'app'] as const) await restart(name);
      };
      // An import may take its time: Ctrl-C need not wait for it.
      const ended = await Promise.race([startBoth(), interrupted]).finally(() => ready.resolve());
      if (ended !== undefined) process.exit(ended);
      console.log(
        `open     ${urls.sandbox}${firstPage}\nsandbox  ${urls.sandbox}\napp      ${urls.app}\nkey      ${apiKey}${adminKey === '' ? '' : `\nsign in  ${adminKey}`}\nBoth restart when their code or templates change. Ctrl-C ends them.`,
      );
      // Not where nobody looks: in a pipe, or on a build machine.
      if (!options['no-open'] && process.stdout.isTTY && process.env['CI'] === undefined)
        await openInBrowser(urls.sandbox + firstPage).catch(() => {});
      return await interrupted;
    } finally {
      isStopping = true;
      await Promise.all(watches.map((watcher) => watcher.close()));
      const services = [...running.values()];
      running.clear();
      await Promise.all(services.map((service) => service.stop()));
    }
  },
});

async function fetchManifest(app: string): Promise<AppManifest> {
  // The kit's own app answers this.
  return (await (await fetch(`${app}/manifest`)).json()) as AppManifest;
}
