/** The app's source with one step more: an import below the others, and its name at the end of `steps`. Null where that cannot be found. */
export function registered(source: string, variable: string, from: string): string | null {
  const list = /\bsteps:\s*\[([^\]]*)\]/.exec(source);
  if (!list || /[[{(]/.test(list[1] ?? '')) return null;
  const imports = [...source.matchAll(/^import [^;]*;$/gm)];
  const last = imports.at(-1);
  if (!last) return null;
  const names = (list[1] ?? '').split(',').map((name) => name.trim()).filter(Boolean); // prettier-ignore
  const listed = `steps: [${[...names, variable].join(', ')}]`;
  const at = last.index + last[0].length;
  const withList = source.slice(0, list.index) + listed + source.slice(list.index + list[0].length);
  return `${withList.slice(0, at)}\nimport ${variable} from '${from}';${withList.slice(at)}`;
}
