// Preloaded by the servers' commands (`node --import`), before any of their code is compiled.
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';

// Compiled code, TypeScript with its types taken off, is kept between starts: a start takes half the time
// and some 25 MiB less.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/marketplace-app-kit', import.meta.url)));
// A server that is killed would leave nothing of it to its next start.
setTimeout(() => module.flushCompileCache?.(), 3_000).unref();

// What passes through a server is short-lived buffers. A young generation that stays small is swept before
// they pile up: 50 MiB less at the peak of an upload, at the same speed. A sandbox with a huge catalog lets it grow
// (src/sandbox/stac/warm-up.ts), and `npm run app` and the images begin with 4 MiB (src/commands/app.ts).
v8.setFlagsFromString('--semi-space-growth-factor=1');

// The commands' own calls go to servers on this machine, which no proxy of the environment can reach (NODE_USE_ENV_PROXY).
for (const name of ['NO_PROXY', 'no_proxy'])
  process.env[name] = [process.env[name], 'localhost', '127.0.0.1', '::1'].filter(Boolean).join(',');
