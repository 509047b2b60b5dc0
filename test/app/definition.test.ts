import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { defineApp, type AppDefinition } from '../../src/app/definition/app-definition.ts';
import { checkDefinition, manifestOf } from '../../src/app/definition/check-definition.ts';
import { loadApp } from '../../src/app/definition/load-app.ts';
import { assumedProfile } from '../../src/contract/index.ts';
import myApp from '../../src/my-app/app.ts';
import { cog, command, ndvi, z, type AnyStep } from '../../src/steps/index.ts';
import { testFolder } from '../support/folders.ts';

const definition = (more: object = {}) =>
  ({
    module: import.meta.url,
    id: 'mine',
    name: 'Mine',
    description: 'Does it.',
    steps: [ndvi, cog],
    ...more,
  }) as AppDefinition;
const step = (more: Partial<Record<keyof AnyStep, unknown>> & { output?: object }) => ({
  ...cog,
  id: 'mine',
  ...more,
  output: { ...cog.output, ...more.output },
});

test('the app of the kit is right, and so is a least one', () => {
  expect(() => checkDefinition(myApp)).not.toThrow();
  const least = defineApp(definition());
  expect(() => checkDefinition(least)).not.toThrow();
  // The control: one that is wrong is not.
  expect(() => checkDefinition({ ...least, id: 'Not An Id' })).toThrow(/id: must be/);
});

describe('a definition is refused with the place and the rule', () => {
  test.each([
    [{ id: 'My App' }, /id: must be a-z, 0-9 and -/],
    [{ id: undefined }, /id: is missing/],
    [{ module: './app.ts' }, /module: must be import\.meta\.url/],
    [{ name: '' }, /name: must not be empty/],
    [{ description: 7 }, /description: is missing/],
    [{ steps: [] }, /steps: must not be empty/],
    [{ stepz: [] }, /has no field stepz/],
    [{ steps: [ndvi, ndvi] }, /steps\[1\]: another step has the id ndvi/],
    [{ steps: [step({ version: '1' })] }, /steps\[0\] \(mine\)\.version: must be a semantic version/],
    [
      { steps: [step({ run: command({ argv: ['cp', '{nothing}', '{output}'] }) })] },
      /steps\[0\] \(mine\)\.run: the command names \{nothing\}, and the step has no such parameter/,
    ],
    [
      {
        steps: [
          step({
            parameters: z.object({ mask: z.string().optional().meta({ title: 'Mask', description: 'x' }) }),
            run: command({ argv: ['cp', '{mask}', '{output}'] }),
          }),
        ],
      },
      /the command names \{mask\}, and the step has no such parameter, or one that may be left out/,
    ],
    [{ steps: [step({ title: '' })] }, /steps\[0\] \(mine\)\.title: must not be empty/],
    [
      { steps: [step({ output: { fileName: '../x.tif' } })] },
      /\(mine\)\.output\.fileName: must not contain a path separator/,
    ],
    [{ steps: [step({ output: { sourceType: 'PICTURE' } })] }, /\(mine\)\.output\.sourceType: must be one of/],
    [
      { steps: [step({ output: { bands: [{ description: 'x', dataType: 'Float' }] } })] },
      /output\.bands: 0\.dataType must be one of Byte, /,
    ],
    [
      { steps: [step({ output: { bands: 'all' } })] },
      /output\.bands: must be 'as-input', 'any', or a list of \{ description/,
    ],
    [
      { steps: [step({ output: { preview: { ramp: 'pink' } } })] },
      /preview\.ramp: must be one of gray, rdylgn, compass/,
    ],
    [{ steps: [step({ parameters: { a: 1 } })] }, /parameters: must be z\.object/],
    [{ steps: [step({ parameters: z.object({ a: z.number() }) })] }, /parameters\.a: has no title/],
    [
      { steps: [step({ parameters: z.object({ a: z.array(z.string()).meta({ title: 'A' }) }) })] },
      /parameters\.a: must be a string, a number, a boolean, a choice or an area/,
    ],
    [
      { steps: [step({ parameters: z.object({ a: z.number().max(1).meta({ title: 'A', default: 2 }) }) })] },
      /parameters\.a: its default must be at most 1/,
    ],
    [{ steps: [step({ run: 'later' })] }, /\(mine\)\.run: must be a function/],
    [{ profile: { name: 'half' } }, /profile: must be a wire profile/],
    [
      { profile: { ...assumedProfile, calls: { ...assumedProfile.calls, userDetail: undefined } } },
      /profile: must be a wire profile/,
    ],
    [{ templates: '/somewhere' }, /templates: must be a file: URL/],
    [{ templates: new URL('./nothing/', import.meta.url) }, /templates: there is no folder/],
    [{ icon: new URL('./definition.test.ts', import.meta.url) }, /icon: .* must be an SVG or a PNG/],
    [{ icon: new URL('./nothing.svg', import.meta.url) }, /icon: there is no file/],
    [
      { pages: [{ path: 'about', title: 'About', template: 'about' }] },
      /pages\[0\]: a page of your own needs templates/,
    ],
    [{ pages: [{ path: 'A b', title: 'About', template: 'about' }] }, /pages\[0\]\.path: must be/],
    [
      { templates: new URL('./', import.meta.url), pages: [{ path: 'a', title: 'A', template: 'gone' }] },
      /pages\[0\]\.template: there is no file/,
    ],
  ])('%j', (more, rule) => {
    expect(() => checkDefinition(definition(more))).toThrow(rule);
  });

  test('a schema with rules of its own is no fault, and a default that breaks one of its own bounds is', () => {
    const refined = z.object({ a: z.number().max(1).default(0).meta({ title: 'A' }) }).refine(({ a }) => a < 1);
    checkDefinition(definition({ steps: [step({ parameters: refined })] }));
  });

  test('an app at the root of a project: its steps could read all of it', () => {
    const module = new URL('../../app.ts', import.meta.url).href;
    expect(() => checkDefinition(definition({ module }))).toThrow(/module: steps could read all of .*src\/my-app/);
  });

  test('all that is wrong is told at once', () => {
    const wrong = definition({ id: '', name: '', steps: [step({ version: 'x', title: '' })] });
    expect(() => checkDefinition(wrong)).toThrow(/id: .*\n.*name: .*\n.*version: .*\n.*title: /);
  });
});

test('a module that exports no app, or is not there, is told by its path', async () => {
  const path = join(await testFolder(), 'app.mjs');
  await expect(loadApp(pathToFileURL(path))).rejects.toThrow(`there is no app at ${path}`);
  await writeFile(path, 'export const app = 1;');
  await expect(loadApp(pathToFileURL(path))).rejects.toThrow(
    `${path} must export its app: export default defineApp({...})`,
  );
});

test('the manifest is what the marketplace takes, the icon in it', async () => {
  const icon = join(await testFolder(), 'icon.svg');
  await writeFile(icon, '<svg xmlns="http://www.w3.org/2000/svg"/>');
  const manifest = manifestOf(definition({ icon: pathToFileURL(icon) }));
  expect(manifest).toMatchObject({ id: 'mine', name: 'Mine', description: 'Does it.' });
  expect(Buffer.from(manifest.icon!.split(',')[1]!, 'base64').toString()).toContain('<svg');
  expect(manifestOf(definition()).icon).toBeUndefined();
});
