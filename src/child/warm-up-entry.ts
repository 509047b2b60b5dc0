/** Compiles what jobs import, for later processes, and ends. */
import './light-gdal.ts';
import { flushCompileCache } from 'node:module';

await import('./channel.ts');
await import('./failure-kind.ts');
for (const module of process.argv.slice(2)) await import(module);
flushCompileCache();
process.exit(0);
