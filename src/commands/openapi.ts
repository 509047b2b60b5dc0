import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { KitError } from '../contract/index.ts';
import { openApi31 } from '../sandbox/openapi/document.ts';
import { readArguments } from './arguments.ts';
import { runCommand } from './command.ts';

const path = fileURLToPath(new URL('../../docs/openapi.json', import.meta.url));

/** Writes docs/openapi.json; with `--check` only says whether it is what the code makes. */
await runCommand(async () => {
  const { values } = readArguments('usage: npm run lab -- src/commands/openapi.ts [--check]', {
    options: { check: { type: 'boolean' } },
  });
  const made = `${JSON.stringify(openApi31('http://127.0.0.1:4010'), null, 1)}\n`;
  if (!values.check) return writeFile(path, made);
  const kept = await readFile(path, 'utf8').catch(() => null);
  if (kept !== made)
    throw new KitError(
      'out_of_date',
      'docs/openapi.json differs from what the contract makes: run npm run lab -- src/commands/openapi.ts and look at what changed',
    );
});
