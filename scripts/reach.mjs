// Finds out what compiled code reaches: the modules that entries load, one through another, and the packages that these import.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

const addresses = /new URL\((['"`])(\.{1,2}\/[^'"`\n$]+)\1, import\.meta\.url\)/g;

/**
 * Modules below `root` that the `entries` load, by their paths from it, and the names of the packages that these import.
 * `without`: modules at which it stops.
 */
export function reach(root, entries, without = []) {
  const files = new Set();
  const packages = new Set();
  const waiting = entries.map((entry) => join(root, entry));
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const name = relative(root, path);
    if (files.has(name) || without.includes(name)) continue;
    files.add(name);
    if (!/\.[cm]?[jt]s$/.test(name)) continue;
    const code = readFileSync(path, 'utf8');
    for (const { fileName: specifier } of ts.preProcessFile(code, true, true).importedFiles) {
      if (specifier.startsWith('.')) waiting.push(resolve(dirname(path), specifier));
      else if (!isBuiltin(specifier)) packages.add(packageOf(specifier));
    }
    for (const [, , address] of code.matchAll(addresses)) {
      const beside = resolve(dirname(path), address);
      if (existsSync(beside) && statSync(beside).isFile() && !relative(root, beside).startsWith('..'))
        waiting.push(beside);
    }
  }
  return { files: [...files].sort(), packages: [...packages].sort() };
}

/** `@scope/name` of `@scope/name/part`. */
export const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
