import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { KitError } from '../contract/index.ts';
import { kitRoot, kitVersion, scratchFolder } from '../files/index.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { defineCommand } from './command.ts';
import { hitsOf, notesAfter, type NoteHit } from './upgrade/notes.ts';
import { checkMerged, isDirty, ownTexts, tryMerge } from './upgrade/rehearse.ts';

const usage = `usage: marketplace-app-kit upgrade --check FORK [options]: lists the changes of this version that hit a fork of an older one

  --check FORK     Folder of the fork, a git repository that began as a clone of the kit
  --merge-only     Tries the merge, and runs neither the type check nor the tests of the fork

It lists the notes of docs/upgrading.md that name something in the fork's own files, with file and line, merges a copy of
the fork with this version, checks its types and runs test/my-app. The fork itself is only read. Exits 0 if the merge has
no conflict and the checks pass.`;

const longestNote = 300;
const inShell = (file: string) => (/^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`);

const adviceFor = (file: string) =>
  file === 'package-lock.json'
    ? ': take that of the kit, then run npm install'
    : ': a file of the kit; keep the change of the kit, and move yours to your folders if you can';

export default defineCommand(import.meta, {
  usage,
  options: { check: { type: 'string' }, 'merge-only': { type: 'boolean', default: false } },
  async run({ values }) {
    if (values.check === undefined) throw wrongArguments('--check FORK is required', usage);
    const fork = resolve(callerFolder(), values.check);
    if (!existsSync(join(fork, '.git')) || !existsSync(join(fork, 'package.json')))
      throw new KitError('bad_arguments', `${fork} is no fork: it must be a git repository with a package.json`);
    if (await isDirty(fork)) console.log('it has changes that are not committed: they are not rehearsed');
    const scratch = scratchFolder('upgrade');
    try {
      const copy = join(scratch.path, 'fork');
      const { version, changed, kept, conflicts } = await tryMerge(fork, copy);
      console.log(`fork of ${version} at ${fork}, this kit is ${kitVersion}`);
      const page = await readFile(join(kitRoot, 'docs/upgrading.md'), 'utf8');
      const hits = hitsOf(notesAfter(version, page), await ownTexts(fork, changed));
      printHits(hits);
      if (conflicts.length > 0) {
        console.log(`\nmerge: git cannot merge ${conflicts.length} of your ${changed.length} changed files by itself`);
        for (const file of conflicts) console.log(`  ${file}${adviceFor(file)}`);
        return 1;
      }
      console.log(`\nmerge: no conflict outside your folders, ${changed.length} changed files`);
      if (kept.length > 0) {
        console.log(
          "the kit's examples in your folders have changed too. The rehearsal keeps yours. After the merge, run:",
        );
        for (const file of kept)
          console.log(`  git ${existsSync(join(fork, file)) ? 'checkout --ours' : 'rm'} -- ${inShell(file)}`);
        console.log('  git add --all && git commit --no-edit');
      }
      if (values['merge-only']) return 0;
      let isGood = true;
      for (const check of await checkMerged(copy)) {
        isGood &&= check.isGood;
        console.log(`${check.name}: ${check.isGood ? 'good' : 'not good'}${check.isGood ? '' : `\n${check.text}`}`);
      }
      console.log(
        isGood
          ? '\nmerge it: git fetch, git merge, npm test (docs/upgrading.md)'
          : '\ncorrect that after the merge; packages of your own are not installed in the copy',
      );
      return isGood ? 0 : 1;
    } finally {
      await scratch.remove();
    }
  },
});

function printHits(hits: readonly NoteHit[]): void {
  if (hits.length === 0) return console.log('\nno note of docs/upgrading.md names anything in your files');
  console.log('\nnotes that name something in your files:');
  for (const [note, own] of Map.groupBy(hits, (hit) => hit.note)) {
    const text = note.text.length > longestNote ? `${note.text.slice(0, longestNote)} ...` : note.text;
    console.log(`\n  ${note.release}: ${text}`);
    for (const { file, line, name } of own) console.log(`    ${file}:${line}  ${name}`);
  }
}
