import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { KitError } from '../contract/kit-error.ts';
import { ownJson } from '../files/index.ts';

/** Large, and the sandbox says what is missing without it. */
const onlyForModels = 'onnxruntime-node';

/** Checks for the sandbox's packages, which an app in production does without. Throws `KitError` (`not_installed`) if one is missing. */
export function requireSandboxPackages(): void {
  const { resolve } = createRequire(import.meta.url);
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { peerDependencies } = ownJson<{ peerDependencies: Record<string, string> }>(manifest);
  const missing = Object.keys(peerDependencies).filter(
    (peerDependency) => peerDependency !== onlyForModels && !isInstalled(peerDependency, resolve),
  );
  if (missing.length === 0) return;
  const wanted = missing.map((dependency) => `'${dependency}@${peerDependencies[dependency]}'`).join(' ');
  throw new KitError(
    'not_installed',
    `the sandbox needs packages that an app in production does without. Install them:\n\n    npm install --save-dev ${wanted}`,
  );
}

function isInstalled(name: string, resolve: (path: string) => string): boolean {
  for (const path of [name, `${name}/package.json`]) {
    try {
      resolve(path);
      return true;
    } catch {
      // Some packages hide their manifest, others have no main module for `require`.
    }
  }
  return false;
}
