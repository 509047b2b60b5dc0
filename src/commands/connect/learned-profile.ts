import { existsSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import {
  readWireChanges,
  wireProfile,
  type CallChanges,
  type WireCallName,
  type WireChanges,
  type WireProfile,
} from '../../contract/index.ts';

/** A wire profile that grows by what is learned. */
export class LearnedProfile {
  #changes: WireChanges;
  readonly #file: string;
  readonly #importedFrom: string;
  #isSaved = true;

  /** `file`: where the profile is written, as JSON if its name ends so. `importedFrom`: module of `wireProfile` in a file of code. */
  constructor(changes: WireChanges, file: string, importedFrom: string) {
    this.#changes = changes;
    this.#file = file;
    this.#importedFrom = importedFrom;
  }

  get changes(): WireChanges {
    return this.#changes;
  }

  get profile(): WireProfile {
    return wireProfile(this.#changes);
  }

  /** Throws `WireChangesError` for changes that no platform could have. */
  change(changes: Partial<WireChanges>): void {
    const merged = Object.entries({ ...this.#changes, ...changes }).filter(([, value]) => value !== undefined);
    this.#changes = readWireChanges(Object.fromEntries(merged));
    this.#isSaved = false;
  }

  call(name: WireCallName): CallChanges {
    return this.#changes.calls?.[name] ?? {};
  }

  /** Adds to the changes of a call. Throws `WireChangesError`. */
  changeCall(name: WireCallName, changes: CallChanges): void {
    const before = this.call(name);
    const merged: CallChanges = { ...before, ...changes };
    for (const part of ['request', 'response', 'constants'] as const)
      if (before[part] && changes[part]) Object.assign(merged, { [part]: { ...before[part], ...changes[part] } });
    this.change({ calls: { ...this.#changes.calls, [name]: merged } });
  }

  /** Returns the mistake in changes of a call, in words; null if there is none. */
  problemOf(name: WireCallName, changes: CallChanges): string | null {
    const [before, isSaved] = [this.#changes, this.#isSaved];
    try {
      this.changeCall(name, changes);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      [this.#changes, this.#isSaved] = [before, isSaved];
    }
  }

  /** Writes the profile whole or not at all, unless nothing has changed. Returns the file, if it holds what was learned. */
  save(): string | null {
    if (this.#isSaved) return existsSync(this.#file) ? this.#file : null;
    const text = this.#file.endsWith('.json')
      ? `${JSON.stringify(this.#changes, null, 2)}\n`
      : moduleOf(this.#changes, this.#importedFrom);
    const beside = `${this.#file}.new`;
    writeFileSync(beside, text);
    // A link leads to the file that is written.
    renameSync(beside, existsSync(this.#file) ? realpathSync(this.#file) : this.#file);
    this.#isSaved = true;
    return this.#file;
  }
}

/** True if a module is one that `moduleOf` could have written: data alone, without comments of the user's that would be lost. */
export function isModuleOf(text: string, changes: WireChanges): boolean {
  const plain = (code: string) =>
    code.replace(/\/\*\* Differences of your platform[^]*?\*\//, '').replaceAll(/[\s"';,\\]/g, '');
  const importedFrom = /from ['"]([^'"]+)['"]/.exec(text)?.[1] ?? '';
  return plain(text) === plain(moduleOf(changes, importedFrom));
}

/** The profile as a module. */
export function moduleOf(changes: WireChanges, importedFrom: string): string {
  return [
    `import { wireProfile } from '${importedFrom}';`,
    '',
    "/** Differences of your platform's HTTP interface from the contract (docs/wire-profile.md), as `connect` learned them. */",
    `export default wireProfile(${literal(changes, '')});`,
    '',
  ].join('\n');
}

/** A JSON value as TypeScript. */
function literal(value: unknown, indent: string): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const inner = `${indent}  `;
  const entries = Array.isArray(value)
    ? value.map((element) => literal(element, inner))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)}: ${literal(member, inner)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return `${open}${close}`;
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`;
}

const quoted = (text: string) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'").replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`;
