// @module-tag all
/** Promises hold, or the docs name the change. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { brokenPromises, publicSurface, untold, type ReleaseRecord } from '../../scripts/release/public-surface.ts';
import { projectRoot } from '../support/folders.ts';

const text = (path: string) => readFileSync(join(projectRoot, path), 'utf8');
const releases = readdirSync(join(projectRoot, 'lab/releases'))
  .map((name) => JSON.parse(text(`lab/releases/${name}`)) as ReleaseRecord)
  .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
const last = releases.findLast(({ surface }) => surface !== undefined)!;

test('what the last release promised is as it was, or docs/upgrading.md says what to do', () => {
  const now = publicSurface();
  // An empty record would promise nothing.
  for (const name of [
    'exports/kit/defineApp',
    'exports/app/createApp',
    'exports/app/RunStore',
    'exports/testing/startSandbox',
    'exports/contract/WireProfile',
    'settings/app/KEEP_DAYS',
    'commands/demo',
    'tables/001-runs',
  ])
    expect(Object.keys(last.surface!)).toContain(name);
  expect(untold(brokenPromises(last.surface!, now), text('docs/upgrading.md'))).toEqual([]);
});

test('the version is that of the last release, which the changelog and the upgrade page know', () => {
  const { version } = JSON.parse(text('package.json')) as { version: string };
  expect(version).toBe(last.version);
  expect(text('CHANGELOG.md')).toContain(`## ${version} - `);
  expect(text('docs/upgrading.md')).toContain(`## To ${version}`);
});

test('a released migration is never changed, not even where a page would tell of it', () => {
  const now = publicSurface();
  const changed = brokenPromises(last.surface!, now).filter((name) => name.startsWith('tables/'));
  expect(changed).toEqual([]);
});

const omit = (surface: Readonly<Record<string, string>>, name: string) =>
  Object.fromEntries(Object.entries(surface).filter(([key]) => key !== name));

describe('a change is found', () => {
  const before = {
    'exports/app/createApp': '(options: A) => B',
    'settings/app/KEEP_DAYS': '30',
    'commands/demo': '--out',
    'exports/contract/colour': 'ZodEnum<{ a: "a"; b: "b"; }>',
  };
  test.each([
    ['something is gone', omit(before, 'exports/app/createApp'), ['exports/app/createApp']],
    [
      'an enum has another word',
      { ...before, 'exports/contract/colour': 'ZodEnum<{ a: "a"; c: "c"; }>' },
      ['exports/contract/colour'],
    ],
    ['a type is another', { ...before, 'exports/app/createApp': '(options: C) => B' }, ['exports/app/createApp']],
    ['a default is another', { ...before, 'settings/app/KEEP_DAYS': '7' }, ['settings/app/KEEP_DAYS']],
    [
      'the words of an enum stand otherwise',
      { ...before, 'exports/contract/colour': 'ZodEnum<{ b: "b"; a: "a"; }>' },
      [],
    ],
    ['something is new', { ...before, 'exports/app/more': 'x' }, []],
  ])('%s', (_, now, broken) => expect(brokenPromises(before, now)).toEqual(broken));

  test('and must be told of in the next section, by its name', () => {
    const broken = ['exports/app/createApp', 'settings/app/KEEP_DAYS'];
    expect(untold(broken, '## Unreleased\n\nNothing yet.\n\n## To 0.2.0\n\n`createApp` and `KEEP_DAYS`')).toEqual(
      broken,
    );
    expect(untold(broken, '## Unreleased\n\n- `createApp` wants a clock.\n\n## To 0.2.0')).toEqual([
      'settings/app/KEEP_DAYS',
    ]);
    expect(untold(broken, '## Unreleased\n\n`createApp`, `settings/app/KEEP_DAYS`')).toEqual([]);
  });
});
