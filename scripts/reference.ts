/** `npm run lab -- scripts/reference.ts`: the pages of docs/reference, and tables of docs/contract.md and CONTRIBUTING.md, from the code itself. With `--check` it only compares. `--pictures` runs every step on a real scene, and draws what comes out. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { laidOut } from './laid-out.ts';
import { withAssumptions } from './reference/assumptions-table.ts';
import { withCalls } from './reference/profile-table.ts';
import { schemaFiles } from './reference/schemas.ts';
import { postmanFiles } from './reference/postman.ts';
import { withNeeds } from './reference/needs-table.ts';
import { pageOfCommands } from './reference/commands-page.ts';
import { pageOfErrors } from './reference/errors-page.ts';
import { pageOfStep, pageOfSteps } from './reference/step-page.ts';
import { kitSteps } from './reference/kit-steps.ts';

const folder = fileURLToPath(new URL('../docs/reference', import.meta.url));
const { values } = parseArgs({
  options: { check: { type: 'boolean', default: false }, pictures: { type: 'boolean', default: false } },
});
await mkdir(folder, { recursive: true });
if (values.pictures) await import('./reference/pictures.ts').then(({ drawPictures }) => drawPictures(folder));
const pictures = (await readdir(folder)).filter((name) => name.endsWith('.png'));
const pages = new Map<string, string>([
  ['README.md', pageOfSteps(kitSteps, pictures)],
  ['errors.md', pageOfErrors()],
  ['commands.md', await pageOfCommands()],
  ...Object.entries(kitSteps).map(([name, step]) => [`${step.id}.md`, pageOfStep(name, step, pictures)] as const),
]);
const wrong: string[] = [];
const contract = '../contract.md';
pages.set(contract, withAssumptions(await readFile(join(folder, contract), 'utf8')));
const contributing = '../../CONTRIBUTING.md';
pages.set(contributing, withNeeds(await readFile(join(folder, contributing), 'utf8')));
const profile = '../wire-profile.md';
pages.set(profile, withCalls(await readFile(join(folder, profile), 'utf8')));
await mkdir(join(folder, '../schemas'), { recursive: true });
for (const [name, text] of schemaFiles()) pages.set(`../schemas/${name}`, text);
await mkdir(join(folder, '../postman'), { recursive: true });
for (const [name, text] of postmanFiles()) pages.set(`../postman/${name}`, text);
for (const [name, text] of pages) {
  const path = join(folder, name);
  const page = await laidOut(path, text);
  if (!values.check) await writeFile(path, page);
  else if ((await readFile(path, 'utf8').catch(() => null)) !== page) wrong.push(name);
}
for (const name of await readdir(folder)) if (name.endsWith('.md') && !pages.has(name)) wrong.push(name);
if (wrong.length > 0) {
  console.error(
    `docs/reference, docs/schemas, docs/postman, docs/contract.md, docs/wire-profile.md or CONTRIBUTING.md differs from the code (${wrong.join(', ')}): run npm run lab -- scripts/reference.ts`,
  );
  process.exitCode = 1;
}
