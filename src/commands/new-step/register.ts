import { stripTypeScriptTypes } from 'node:module';

/** Matches comments and strings. */
const noCode = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;

/**
 * Gives the app's source with one step more: an import below the others, and its name at the end of `steps`. Null if the list
 * cannot be found, or if the result would not parse.
 */
export function registered(source: string, variable: string, from: string): string | null {
  // Keeps the length, so that positions match the source.
  const code = source.replace(noCode, (text) => text.replace(/[^\n]/g, ' '));
  const list = /\bsteps:\s*\[([^\]]*)\]/.exec(code);
  const lastImport = [...code.matchAll(/^import [^;]*;/gm)].at(-1);
  if (!list || !lastImport) return null;
  const [all, within = ''] = list;
  if (/[[{(]/.test(within)) return null;
  const names = within.trimEnd();
  const listAt = list.index + all.length - 1 - within.length + names.length;
  const listed = names.trim() === '' ? variable : names.endsWith(',') ? ` ${variable},` : `, ${variable}`;
  const importAt = lastImport.index + lastImport[0].length;
  const changed = `${source.slice(0, importAt)}\nimport ${variable} from '${from}';${source.slice(importAt, listAt)}${listed}${source.slice(listAt)}`;
  return parses(changed) ? changed : null;
}

function parses(code: string): boolean {
  const emitWarning = process.emitWarning.bind(process);
  // Suppresses Node's experimental warning, which does not concern authors of steps.
  process.emitWarning = () => {};
  try {
    stripTypeScriptTypes(code);
    return true;
  } catch {
    return false;
  } finally {
    process.emitWarning = emitWarning;
  }
}
