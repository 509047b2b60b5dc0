/** Notes of docs/upgrading.md, and the places of a fork that they name. */

/** One note, with the release that it is about. */
export interface UpgradeNote {
  /** Version, or `Unreleased`. */
  readonly release: string;
  readonly text: string;
  /** Names in the note that can be looked for. */
  readonly names: readonly string[];
}

/** A line of a fork that has a name of a note. */
export interface NoteHit {
  readonly note: UpgradeNote;
  readonly name: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/** The notes of the releases after a version, the oldest release first. */
export function notesAfter(version: string, page: string): UpgradeNote[] {
  const sections = page.split(/^## /m).slice(1);
  const notes = sections.flatMap((section) => {
    const release = /^(?:To (\d+\.\d+\.\d+)|(Unreleased))\s*$/m.exec(section.split('\n')[0] ?? '');
    const name = release?.[1] ?? release?.[2];
    if (name === undefined || (name !== 'Unreleased' && compareVersions(name, version) <= 0)) return [];
    return [...section.matchAll(/^- (.+)$/gm)].map(([, text = '']): UpgradeNote => {
      return { release: name, text, names: namesIn(text) };
    });
  });
  // The page has the newest release first.
  return notes.toSorted((a, b) => orderOf(a) - orderOf(b));
}

const orderOf = ({ release }: UpgradeNote) =>
  release === 'Unreleased' ? Infinity : release.split('.').reduce((sum, part) => sum * 1_000 + Number(part), 0);

function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Names in backquotes that a file of a fork can hold: of code, of settings and of templates. Plain words would be found everywhere. */
function namesIn(text: string): string[] {
  const quoted = [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const isName = (name: string) =>
    /^[A-Za-z_][\w-]*(\.[A-Za-z]\w*)*$/.test(name) &&
    name.length >= 4 &&
    (/[a-z][A-Z]|_|\.eta$|^[A-Z][a-z]+[A-Z]|^[A-Z]{4,}$/.test(name) || name.length >= 12);
  return [...new Set(quoted.filter(isName))];
}

/** Places of a fork's files that notes name, at most one for each note, name and file. */
export function hitsOf(notes: readonly UpgradeNote[], files: ReadonlyMap<string, string>): NoteHit[] {
  return notes.flatMap((note) =>
    note.names.flatMap((name) =>
      [...files].flatMap(([file, text]): NoteHit[] => {
        if (name.endsWith('.eta')) return file.endsWith(`/${name}`) ? [{ note, name, file, line: 1 }] : [];
        const at = new RegExp(`(?<![\\w.-])${RegExp.escape(name)}(?![\\w-])`).exec(text)?.index;
        return at === undefined ? [] : [{ note, name, file, line: text.slice(0, at).split('\n').length }];
      }),
    ),
  );
}
