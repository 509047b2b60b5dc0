/** The JSON Schemas that editors use take what the kit takes, and refuse what it refuses. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { projectRoot } from '../support/folders.ts';
import { otherProfile } from '../support/other-wire.ts';

const read = (path: string): unknown => JSON.parse(readFileSync(join(projectRoot, path), 'utf8'));
const ajv = new Ajv({ strict: false, validateFormats: false });
const problems = (name: string, value: unknown) => {
  const validate = ajv.compile(read(`docs/schemas/${name}.schema.json`) as object);
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

const filesNamed = (folder: string, name: string) =>
  readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(`/${name}`))
    .map((path) => join(folder, path));

test.each(filesNamed('src/steps', 'cases.json'))('%s', (path) => {
  expect(problems('step-cases', read(path))).toEqual([]);
});

test.each(filesNamed('src/sandbox/models', 'model.json'))('%s', (path) => {
  expect(problems('model', read(path))).toEqual([]);
});

test('a wire profile, with the address of its schema', () => {
  expect(problems('wire-profile', { $schema: './x.json', ...otherProfile.changes })).toEqual([]);
});

test.each([
  ['wire-profile', { name: 'x', calls: { createOperation: { constant: {} } } }],
  ['wire-profile', { name: 'x', limits: { firstPartNumber: 2 } }],
  ['step-cases', { cases: [] }],
  ['step-cases', { cases: [{ name: 'x', expected: {} }] }],
  ['model', { name: 'x', version: '1', type: 'PAINTING', labels: ['a'], bands: ['b'] }],
  ['app-manifest', { id: 'an app', name: 'x', launchUrl: 'http://127.0.0.1/launch' }],
])('%s refuses %j', (name, value) => {
  expect(problems(name, value)).not.toEqual([]);
});
